/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interposers for prctl(2) and syscall(2), by which a program may install a system-call filter for itself: seccomp(2) has no
 * function in libc. It may forbid system calls that the agent makes, and the kernel would end the program for them. A thread that
 * forbids itself the time stamp of the CPU would be ended by the agent's handler, which reads it. A program that makes the call
 * with an instruction of its own is not noticed.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/interpose/interpose.h"
#include "agent/libc/vdso.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"

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

/* Before a system call that the program makes by syscall(2) or prctl(2). */
static void before(const struct sf_filter_call *call)
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
	before(&call);
	if (next && sf_filter_has_dispatch())
		return next(option, args[1], args[2], args[3], args[4]);
	return (int)sf_interpose_result(
		sf_raw6(SYS_prctl, args[0], args[1], args[2], args[3], args[4], 0));
}

/* --- syscall(2) --- */

/*
 * libc's loads the number of the call from where nobody finds it again: an EINTR of ours could not be mended
 * (frozen/signal/context.h). This one leaves it on the stack, right where the context stands after the call. It leaves the frame
 * pointer there, too: the registers of a thread that sleeps in the call are not known, and syscall()'s own frame has no other
 * end. Signal-safe.
 */
#if defined(__x86_64__)
long sf_marked_syscall(long number, long a, long b, long c, long d, long e, long f);
extern const char sf_marked_syscall_end[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
	".p2align 4\n"
	".hidden sf_marked_syscall\n"
	".globl sf_marked_syscall\n"
	".type sf_marked_syscall, @function\n"
	"sf_marked_syscall:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %rbp, 0\n"
	"push %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"mov %rdi, %rax\n"
	"mov %rsi, %rdi\n"
	"mov %rdx, %rsi\n"
	"mov %rcx, %rdx\n"
	"mov %r8, %r10\n"
	"mov %r9, %r8\n"
	"mov 24(%rsp), %r9\n"
	"syscall\n"
	".hidden sf_marked_syscall_end\n"
	".globl sf_marked_syscall_end\n"
	"sf_marked_syscall_end:\n"
	"add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size sf_marked_syscall, .-sf_marked_syscall\n"
	".popsection\n");

void sf_interpose_syscall_init(void)
{
	sf_handler.config.marked_syscall = (uint64_t)(uintptr_t)sf_marked_syscall_end;
}

/* The setuid family by number changes the calling thread alone, as without the agent. */
static enum sf_demand demand_of(const struct sf_filter_call *call)
{
	switch (call->number) {
	case SYS_unshare:
		return sf_unshare_demand((int)call->args[0]);
	case SYS_setns:
		return sf_setns_demand((int)call->args[0], (int)call->args[1]);
	default:
		return SF_DEMAND_NOTHING;
	}
}

/* As the agent's sigtimedwait(), but no point of cancellation. */
static long wait_for_signal(const struct sf_filter_call *call)
{
	const uint64_t start_ns = sf_raw_now_ns();
	const struct timespec *time = (const struct timespec *)call->args[2];
	siginfo_t own_info, *info = call->args[1] ? (siginfo_t *)call->args[1] : &own_info;
	struct timespec left;
	long result = sf_marked_syscall(call->number, call->args[0], (long)info, (long)time, call->args[3], 0, 0);

	while (sf_interpose_is_ours((int)result, info)) {
		if (time)
			left = sf_interpose_left(start_ns, time);
		result = sf_marked_syscall(call->number, call->args[0], (long)info, time ? (long)&left : 0, call->args[3], 0, 0);
	}
	return result;
}

/*
 * A child of clone(2) that begins on a stack of its own comes back to the address on top of it, if it comes from libc's function,
 * which leaves nothing there.
 */
static bool may_have_own_stack(const struct sf_filter_call *call)
{
	return (call->number == SYS_clone && call->args[1]) || call->number == SYS_clone3;
}

/* All six, also of a call that has fewer: as libc's does. */
SF_INTERPOSED long syscall(long number, ...)
{
	long (*next)(long number, ...) = (long (*)(long, ...))sf_interpose_next(SF_NEXT_syscall);
	struct sf_filter_call call = { .number = number };
	const long *args = call.args;
	va_list list;
	sigset_t others;
	uint64_t blocked;
	bool aside;
	long result;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		call.args[i] = va_arg(list, long);
	va_end(list);
	before(&call);
	if (sf_interpose_own_action(&call, &result))
		return sf_interpose_result(result);
	if (next && (sf_filter_has_dispatch() || may_have_own_stack(&call)))
		return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
	if (number == SYS_rt_sigtimedwait)
		return sf_interpose_result(wait_for_signal(&call));
	if (number == SYS_execve || number == SYS_execveat)
		return sf_interpose_exec(&call);
	if (number == SYS_signalfd4 || number == SYS_signalfd)
		call.args[1] = (long)sf_interpose_signalfd_set((const sigset_t *)args[1], &others);
	if (number == SYS_exit)
		sf_interpose_thread_ends();
	aside = sf_interpose_step_aside(demand_of(&call));
	blocked = sf_interpose_begin_undone(&call);
	result = sf_interpose_result(sf_marked_syscall(number, args[0], args[1], args[2], args[3], args[4],
						       args[5]));
	sf_interpose_end_undone(blocked);
	sf_interpose_come_back(aside);
	if (!result)
		sf_interpose_action_changed(&call);
	if (!result && number == SYS_rt_sigpending)
		sf_interpose_pending((uint8_t *)args[0], (size_t)args[1]);
	return result;
}
#else
void sf_interpose_syscall_init(void)
{
}
#endif
