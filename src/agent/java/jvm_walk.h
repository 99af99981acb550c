/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AsyncGetCallTrace (HotSpot: prims/forte.cpp), the machine's own walk of Java frames, as
 * frozen/hotspot/agct.h calls it. Not frozen code: what it does in the handler is the machine's business
 * (docs/hotspot.md says what can go wrong).
 */
#ifndef SF_AGENT_JVM_WALK_H
#define SF_AGENT_JVM_WALK_H

#include <stdbool.h>

#include "agent/java/jvm_table.h"
#include "base/error.h"

/*
 * Looks the function up. False: this machine (a JDK of this version, 0: unknown) has none that we
 * know.
 */
bool sf_jvm_walk_find(int version, struct sf_error *err);

/*
 * Where a JNIEnv is in a JavaThread, learned from the calling thread: a Java thread's own, with the
 * object that it is for Java.
 */
bool sf_jvm_walk_measure(struct sf_jni *jni, void *thread);

/* The JavaThread of the calling thread, which has this environment; 0: not measured yet. */
uint64_t sf_jvm_walk_thread(const struct sf_jni *jni);

/* From now on handlers call AsyncGetCallTrace; or no longer: then this waits for the calls that go on. */
void sf_jvm_walk_on(void);
void sf_jvm_walk_off(void);

#endif
