/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An errand: a call of a Java virtual machine that must be made by a thread that is attached to the
 * virtual machine. A new thread is made and attached, runs the call, and ends. The caller waits with a
 * time-out.
 */
#ifndef SF_AGENT_JVM_ERRAND_H
#define SF_AGENT_JVM_ERRAND_H

#include <stdbool.h>

#include "agent/java/jvm_table.h"

/*
 * Runs on the new thread. It may run after the caller's time-out, so it must itself check which work
 * is still wanted.
 */
typedef void sf_jvm_errand_fn(struct sf_jni_vm *vm, struct sf_jni *jni);

/*
 * Runs `run` and waits at most this number of seconds. False: no thread could be made, or `run` did
 * not return in time. True also if the virtual machine did not attach the thread and `run` was not
 * called.
 */
bool sf_jvm_errand(struct sf_jni_vm *vm, sf_jvm_errand_fn *run, int seconds);

#endif
