/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Java virtual machine tells the agent by its Tool Interface while a profile is under way,
 * if it has loaded the agent itself: threads that begin and end, with their names; and, for
 * --java-walk=agct, what AsyncGetCallTrace needs: ids for all methods (jvm_walk.h). Between
 * profiles nothing of it is on. A machine that has not loaded us is called only for
 * --java-walk=agct.
 *
 * The machine's functions are called by threads that it knows: by its own, in events, and by one
 * that is made for it and is gone again. A machine that does not answer in time is left alone; when
 * it answers later, it gets what is wanted then, which is nothing when the profile is over.
 */
#ifndef SF_AGENT_JVM_TOOL_H
#define SF_AGENT_JVM_TOOL_H

#include <stdbool.h>

#include "agent/java/jvm_table.h"
#include "agent/options.h"
#include "base/error.h"

/*
 * The machine that has loaded us; `started`: it runs Java already. Once; a thread that it knows, if
 * it has started.
 */
void sf_jvm_tool_meet(struct sf_jni_vm *vm, bool started);

/*
 * A profile begins: before the first sample. False, for java-walk=agct only: it cannot be had, and
 * why. Without it whatever fails is done without.
 */
bool sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err);

/* It is over: no handler is under way any more. */
void sf_jvm_tool_end(void);

#endif
