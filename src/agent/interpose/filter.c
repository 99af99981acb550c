/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposer for prctl(2). A program that installs a system-call filter for itself may forbid system calls that the
 * agent makes, and the kernel would end the program for them. seccomp(2) has no function in libc; the interposer of
 * syscall(2) handles it. A thread that forbids itself the time stamp of the CPU would be ended by the agent's handler, which
 * reads it. A program that makes the call with an instruction of its own is not noticed.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/interpose/interpose.h"
#include "agent/libc/vdso.h"
#include "frozen/raw.h"

const struct sf_interpose_hooks *_Atomic sf_interpose_hooks;

static bool is_filter(const struct sf_filter_call *call)
{
	return (call->number == SYS_prctl && call->args[0] == PR_SET_SECCOMP) ||
	       (call->number == SYS_seccomp && (call->args[0] == SECCOMP_SET_MODE_FILTER ||
						call->args[0] == SECCOMP_SET_MODE_STRICT));
}

static bool forbids_time_stamps(const struct sf_filter_call *call)
{
	return call->number == SYS_prctl && call->args[0] == PR_SET_TSC && call->args[1] == PR_TSC_SIGSEGV;
}

void sf_interpose_before(const struct sf_filter_call *call)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	int error;

	if (forbids_time_stamps(call))
		sf_agent_forbid_vdso_clock();
	if ((!sf_filter_notes_dispatch(call) && !is_filter(call)) || !hooks)
		return;
	error = errno;
	hooks->before_filter(call);
	errno = error;
}

SF_INTERPOSED int prctl(int option, ...)
{
	int (*next)(int option, ...) = (int (*)(int, ...))sf_interpose_next(SF_NEXT_prctl);
	struct sf_filter_call call = { SYS_prctl, { option } };
	const long *args = call.args;
	va_list list;

	va_start(list, option);
	for (int i = 1; i < 5; i++)
		call.args[i] = va_arg(list, long);
	va_end(list);
	sf_interpose_before(&call);
	if (next && sf_filter_has_dispatch())
		return next(option, args[1], args[2], args[3], args[4]);
	return (int)sf_interpose_result(
		sf_raw6(SYS_prctl, args[0], args[1], args[2], args[3], args[4], 0));
}
