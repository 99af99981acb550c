/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The use of the JVM Tool Interface during a profile. A virtual machine that has loaded the agent
 * itself reports threads that begin and end, with their names. For --java-walk=agct the agent also
 * makes ids for all methods, which AsyncGetCallTrace needs (jvm_walk.h). Between profiles all of it is
 * off. A virtual machine that has not loaded the agent is called only for --java-walk=agct.
 *
 * The machine's functions are called on attached threads only: on its own threads, in events, and on a
 * new thread that then ends. If a machine does not answer in time, the agent goes on without it. A
 * late answer gets the settings that are wanted then, which is nothing after the profile.
 */
#ifndef SF_AGENT_JVM_TOOL_H
#define SF_AGENT_JVM_TOOL_H

#include <stdbool.h>

#include "agent/java/jvm_table.h"
#include "agent/options.h"
#include "base/error.h"

/*
 * Called once by the virtual machine that has loaded the agent. `started`: it runs Java already; then
 * the calling thread must be attached.
 */
void sf_jvm_tool_meet(struct sf_jni_vm *vm, bool started);

/*
 * A profile begins: before the first sample. False, for java-walk=agct only: it cannot be had, and
 * why. Without it whatever fails is done without.
 */
bool sf_jvm_tool_begin(const struct sf_agent_options *options, struct sf_error *err);

/* The profile has ended, and no signal handler runs any more. */
void sf_jvm_tool_end(void);

#endif
