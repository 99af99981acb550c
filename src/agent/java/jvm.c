/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways by which a Java virtual machine loads the agent itself: -agentpath:LIBRARY=OPTIONS at
 * its start, and the attach mechanism while it runs (JVM Tool Interface, "Starting Agents"). It may
 * have been preloaded as well: the loader maps a library once, so there is one agent all the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/java/jvm_tool.h"
#include "agent/lifecycle.h"

#define SF_JVM_EXPORT __attribute__((visibility("default")))

/* The functions that a virtual machine finds by name in an agent's library. */
SF_JVM_EXPORT int32_t Agent_OnLoad(struct sf_jni_vm *vm, char *options, void *reserved);
SF_JVM_EXPORT int32_t Agent_OnAttach(struct sf_jni_vm *vm, char *options, void *reserved);
SF_JVM_EXPORT void Agent_OnUnload(struct sf_jni_vm *vm);

/* A program whose options cannot be understood runs on, as with STILLFRAME=. */
SF_JVM_EXPORT int32_t Agent_OnLoad(struct sf_jni_vm *vm, char *options, void *reserved)
{
	struct sf_error err = { 0 };
	int error = errno;

	(void)reserved;
	sf_jvm_tool_meet(vm, false);
	if (options && *options && !sf_lifecycle_obey(options, &err))
		sf_lifecycle_complain(&err, err.code == SF_E_INPUT);
	errno = error;
	return 0;
}

/* The number that is returned reports a failure to the process that loads the agent. */
SF_JVM_EXPORT int32_t Agent_OnAttach(struct sf_jni_vm *vm, char *options, void *reserved)
{
	struct sf_error err = { 0 };
	int error = errno;
	bool ok;

	(void)reserved;
	sf_jvm_tool_meet(vm, true);
	ok = !options || !*options || sf_lifecycle_obey(options, &err);
	if (!ok)
		sf_lifecycle_complain(&err, false);
	errno = error;
	return ok ? 0 : 1;
}

/* The code stays mapped, and a profile goes on until the process ends (lifecycle.c). */
SF_JVM_EXPORT void Agent_OnUnload(struct sf_jni_vm *vm)
{
	(void)vm;
}
