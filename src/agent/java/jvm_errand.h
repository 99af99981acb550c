/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An errand: a call of a Java virtual machine that has to come from a thread which it knows. A
 * thread is made for it, is introduced to the machine, runs it and is gone again; the caller waits
 * for it, but not for ever.
 */
#ifndef SF_AGENT_JVM_ERRAND_H
#define SF_AGENT_JVM_ERRAND_H

#include <stdbool.h>

#include "agent/java/jvm_table.h"

/*
 * On the thread that was made. It may come late, when who asked for it waits no more: it looks
 * itself at what is wanted now.
 */
typedef void sf_jvm_errand_fn(struct sf_jni_vm *vm, struct sf_jni *jni);

/*
 * Runs `run` and waits so many seconds. False: no thread could be made, or it did not come back in
 * time. True also where the machine did not take the thread, and nothing was run.
 */
bool sf_jvm_errand(struct sf_jni_vm *vm, sf_jvm_errand_fn *run, int seconds);

#endif
