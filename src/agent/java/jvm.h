/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a native agent of a Java virtual machine. No header of a JDK is needed to build it:
 * what is called is declared by its place in the tables of the specifications.
 */
#ifndef SF_AGENT_JVM_H
#define SF_AGENT_JVM_H

#include <stdbool.h>
#include <stdint.h>

#define SF_JVM_EXPORT __attribute__((visibility("default")))

struct sf_jni_vm;   /* JavaVM (jvm_table.h) */

/* The functions that a virtual machine finds by name in an agent's library. */
SF_JVM_EXPORT int32_t Agent_OnLoad(struct sf_jni_vm *vm, char *options, void *reserved);
SF_JVM_EXPORT int32_t Agent_OnAttach(struct sf_jni_vm *vm, char *options, void *reserved);
SF_JVM_EXPORT void Agent_OnUnload(struct sf_jni_vm *vm);

#endif
