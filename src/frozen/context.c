/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel hands to a signal handler: the registers (asm/sigcontext.h), and the system call that
 * the signal made fail.
 *
 * The kernel keeps no trace of a call's number once it has failed: rax holds the result. All its
 * arguments are still in their registers, so to make it again takes the number, and that stands in the
 * code: libc's wrappers load it with a constant just before the `syscall`, at most with loads of arguments from
 * the stack in between. Looked at in glibc 2.36 (Debian 12), in both branches of those that are
 * cancellation points: every blocking call that sf_call_mends names. Not covered, since the number is
 * not in the code: musl's cancellation points, and libc's syscall(2), where it is not the agent's that is called
 * (agent/interpose_syscall.c).
 *
 * Calls that SA_RESTART restarts never fail because of us: their EINTR is the program's own.
 *
 * Of the others one thing cannot be told: whether it was our signal that interrupted the call, or a handler of
 * the program's has done so and returned this very moment. Made again, the call would then wait for what has
 * happened already. Who waits for a signal and a file with poll() alone loses a signal that comes just
 * before poll() in the same way, so nothing new can go wrong there. But calls that wait for a signal,
 * or let signals through only while they wait, are made for not losing any: these are
 * made again only in a program that has no handler.
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <ucontext.h>

#include "frozen/chain.h"
#include "frozen/context.h"
#include "frozen/inside.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on every architecture */
#endif

/*
 * Each of these returns EINTR only when it has transferred, taken or changed nothing. A time-out begins
 * anew; as our signals come to threads that run, little of it was gone. Left out, as making them
 * again would do something else: close (the descriptor is gone), ioctl (who knows).
 *
 * To add one: a line here, and a case in tests/unit/test_context.c.
 */
static const int16_t mending[] = {
	SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
	SYS_epoll_pwait2, SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_pwrite64,
	SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_accept,
	SYS_accept4, SYS_connect, SYS_msgrcv, SYS_msgsnd, SYS_mq_timedreceive, SYS_mq_timedsend,
	SYS_semop, SYS_semtimedop, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_wait4, SYS_waitid,
	SYS_flock, SYS_fcntl, SYS_io_getevents, SYS_openat, SYS_getrandom,
#ifdef SYS_poll /* the older calls, which aarch64 never had */
	SYS_poll, SYS_select, SYS_epoll_wait, SYS_pause, SYS_open,
#endif
};

bool sf_call_mends(int32_t number)
{
	for (size_t i = 0; i < sizeof(mending) / sizeof(mending[0]); i++) {
		if (mending[i] == number)
			return true;
	}
	return false;
}

#if defined(__x86_64__)

/* By DWARF number, 0 to 15: where a register is in uc_mcontext.gregs. */
static const uint8_t greg_of[] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

void sf_context_registers(const void *ucontext, struct sf_regs *ret)
{
	const ucontext_t *context = ucontext;

	ret->known = 0;
	for (unsigned i = 0; i < sizeof(greg_of); i++)
		sf_reg_set(ret, i, (uint64_t)context->uc_mcontext.gregs[greg_of[i]]);
	ret->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	sf_reg_set(ret, 16, ret->pc);
}

/*
 * Instructions that glibc has between the number and the `syscall`; `mask` says which bytes count.
 * To add one: a line, and a row in tests/unit/test_context.c.
 */
static const struct {
	uint8_t size, mask;
	uint8_t bytes[5];
} between[] = {
	{ 5, 0x0f, { 0x48, 0x8b, 0x54, 0x24 } }, /* mov disp8(%rsp), %rdx */
	{ 5, 0x0f, { 0x48, 0x8b, 0x74, 0x24 } }, /* mov disp8(%rsp), %rsi */
	{ 5, 0x0f, { 0x44, 0x8b, 0x54, 0x24 } }, /* mov disp8(%rsp), %r10d */
	{ 4, 0x07, { 0x8b, 0x7c, 0x24 } },       /* mov disp8(%rsp), %edi */
	{ 4, 0x07, { 0x40, 0x80, 0xf6 } },       /* xor $imm8, %sil */
	{ 3, 0x07, { 0x45, 0x31, 0xd2 } },       /* xor %r10d, %r10d */
	{ 3, 0x07, { 0x8b, 0x3c, 0x24 } },       /* mov (%rsp), %edi */
	{ 2, 0x03, { 0x31, 0xd2 } },             /* xor %edx, %edx */
};
#define MAX_BETWEEN 3

static bool ends_with(const uint8_t *code, size_t n, const uint8_t *bytes, unsigned size,
		      unsigned mask)
{
	if (n < size)
		return false;
	for (unsigned i = 0; i < size; i++) {
		if ((mask >> i & 1) && code[n - size + i] != bytes[i])
			return false;
	}
	return true;
}

/* The number that the code ending here loads, or -1. */
static int32_t loaded_number(const uint8_t *code, size_t n)
{
	int32_t number;

	if (n >= 5 && code[n - 5] == 0xb8) { /* mov $imm32, %eax */
		memcpy(&number, code + n - 4, sizeof(number));
		return number;
	}
	if (n >= 2 && code[n - 2] == 0x31 && code[n - 1] == 0xc0) /* xor %eax, %eax */
		return 0;
	return -1;
}

/* How many of the bytes are left without an instruction of `between` at their end. */
static size_t without_last(const uint8_t *code, size_t n)
{
	for (unsigned i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		if (ends_with(code, n, between[i].bytes, between[i].size, between[i].mask))
			return n - between[i].size;
	}
	return 0;
}

static int32_t interrupted_call(const uint8_t *code, size_t n)
{
	static const uint8_t syscall[] = { 0x0f, 0x05 };
	int32_t number = -1;

	if (!ends_with(code, n, syscall, sizeof(syscall), 3))
		return -1;
	n -= sizeof(syscall);
	for (unsigned i = 0; i <= MAX_BETWEEN && n > 0; i++, n = without_last(code, n)) {
		number = loaded_number(code, n);
		if (number >= 0)
			break;
	}
	return number;
}

/* The program's own: ours does not count. */
static bool has_handler(int signal)
{
	struct sf_kernel_action action = { 0 };

	if (signal == sf_inside.signal)
		sf_chain_get(&action);
	else
		sf_raw4(SYS_rt_sigaction, signal, NULL, &action, sizeof(action.mask));
	return action.handler != SF_CHAIN_DEFAULT && action.handler != SF_CHAIN_IGNORE;
}

static bool has_handlers(uint64_t signals)
{
	for (int signal = 1; signals; signal++, signals >>= 1) {
		if ((signals & 1) && has_handler(signal))
			return true;
	}
	return false;
}

/*
 * A handler of the program's that runs as soon as ours returns is what the program takes for the
 * interruption. Another signal of ours that is pending mends by itself.
 */
static bool is_interrupted_again(const ucontext_t *context)
{
	uint64_t pending = 0, blocked;

	memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	sf_raw2(SYS_rt_sigpending, &pending, sizeof(pending));
	return has_handlers(pending & ~blocked);
}

/* Whether one of these, without SA_RESTART, breaks a call off. */
static bool breaks_off(uint64_t signals)
{
	for (int signal = 1; signals; signal++, signals >>= 1) {
		struct sf_kernel_action action = { 0 };

		if (!(signals & 1) || !has_handler(signal))
			continue;
		if (signal == sf_inside.signal)
			sf_chain_get(&action);
		else
			sf_raw4(SYS_rt_sigaction, signal, NULL, &action, sizeof(action.mask));
		if (!(action.flags & SA_RESTART))
			return true;
	}
	return false;
}

/*
 * Two signals at once, and ours was the first: the kernel has set the context back to the call, as SA_RESTART
 * says, but the program's signal, which runs its handler as soon as ours returns, was to break
 * the call off. That a call was made there shows in rcx, where `syscall` leaves its return address.
 */
void sf_context_give_way(void *ucontext)
{
	ucontext_t *context = ucontext;
	greg_t *gregs = context->uc_mcontext.gregs;
	uint64_t pending = 0, blocked;

	if (gregs[REG_RCX] != gregs[REG_RIP] + 2 || gregs[REG_RAX] < 0 || gregs[REG_RAX] > INT16_MAX ||
	    !sf_call_mends((int32_t)gregs[REG_RAX]))
		return;
	memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	sf_raw2(SYS_rt_sigpending, &pending, sizeof(pending));
	if (!breaks_off(pending & ~blocked))
		return;
	gregs[REG_RAX] = -EINTR;
	gregs[REG_RIP] += 2;
}

/* Those that a fault of the thread's own raises interrupt no call; libc's own 32 and 33 are no program's. */
#define BIT(signal) (UINT64_C(1) << ((signal) - 1))
static const uint64_t interrupting = ~(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) |
				       BIT(SIGTRAP) | BIT(SIGSYS) | BIT(32) | BIT(33));

/* Whether the call is one that waits for a signal: by itself, or by the mask that it is given. */
static bool waits_for_signal(const greg_t *gregs, int32_t number)
{
	switch (number) {
	case SYS_pause:
	case SYS_rt_sigsuspend:
		return true;
	case SYS_ppoll:
		return gregs[REG_R10] != 0;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return gregs[REG_R8] != 0;
	case SYS_pselect6:
		return gregs[REG_R9] != 0;
	default:
		return false;
	}
}

static bool ours_restarts(void)
{
	struct sf_kernel_action action = { 0 };

	sf_raw4(SYS_rt_sigaction, sf_inside.signal, NULL, &action, sizeof(action.mask));
	return action.flags & SA_RESTART;
}

/* A socket with a time-out; anything else that can be read or written is none. */
static bool has_timeout(greg_t fd, int which)
{
	struct timeval time = { 0 };
	socklen_t size = sizeof(time);

	return sf_raw6(SYS_getsockopt, fd, SOL_SOCKET, which, (long)&time, (long)&size, 0) == 0 &&
	       (time.tv_sec || time.tv_usec);
}

/* Whether the kernel itself makes the call again after a handler with SA_RESTART (signal(7)). */
static bool restarts(const greg_t *gregs, int32_t number)
{
	switch (number) {
	case SYS_wait4:
	case SYS_waitid:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_open:
	case SYS_openat:
	case SYS_mq_timedreceive:
	case SYS_mq_timedsend:
		return true;
	case SYS_futex:
		return gregs[REG_R10] == 0;
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
		return !has_timeout(gregs[REG_RDI], SO_RCVTIMEO);
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_connect:
		return !has_timeout(gregs[REG_RDI], SO_SNDTIMEO);
	default:
		return false;
	}
}

/* The EINTR cannot have come from a signal of ours: a handler of the program's has just returned. */
static bool is_for_program(const greg_t *gregs, int32_t number)
{
	return ours_restarts() && restarts(gregs, number);
}

bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret)
{
	const ucontext_t *context = ucontext;

	*pc_ret = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	return context->uc_mcontext.gregs[REG_RAX] == -EINTR;
}

bool sf_context_mend(void *ucontext, const uint8_t *code, size_t n_code)
{
	ucontext_t *context = ucontext;
	greg_t *gregs = context->uc_mcontext.gregs;
	int32_t number;

	if (gregs[REG_RAX] != -EINTR)
		return false;
	if (sf_inside.marked_syscall && (uint64_t)gregs[REG_RIP] == sf_inside.marked_syscall)
		number = *(const int32_t *)(uintptr_t)gregs[REG_RSP];
	else
		number = interrupted_call(code, n_code);
	if (number < 0 || !sf_call_mends(number) || is_interrupted_again(context))
		return false;
	if (waits_for_signal(gregs, number) && has_handlers(interrupting))
		return false;
	if (is_for_program(gregs, number))
		return false;
	gregs[REG_RAX] = number;
	gregs[REG_RIP] -= 2;
	return true;
}

#elif defined(__aarch64__)

void sf_context_registers(const void *ucontext, struct sf_regs *ret)
{
	const ucontext_t *context = ucontext;

	ret->known = 0;
	for (unsigned i = 0; i < 31; i++)
		sf_reg_set(ret, i, context->uc_mcontext.regs[i]);
	sf_reg_set(ret, 31, context->uc_mcontext.sp);
	ret->pc = context->uc_mcontext.pc;
}

bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret)
{
	(void)ucontext, (void)pc_ret;
	return false;
}

void sf_context_give_way(void *ucontext)
{
	(void)ucontext;
}

bool sf_context_mend(void *ucontext, const uint8_t *code, size_t n_code)
{
	(void)ucontext, (void)code, (void)n_code;
	return false;
}

#else

void sf_context_registers(const void *ucontext, struct sf_regs *ret)
{
	(void)ucontext;
	memset(ret, 0, sizeof(*ret)); /* sp is not known: no walk begins */
}

bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret)
{
	(void)ucontext, (void)pc_ret;
	return false;
}

void sf_context_give_way(void *ucontext)
{
	(void)ucontext;
}

bool sf_context_mend(void *ucontext, const uint8_t *code, size_t n_code)
{
	(void)ucontext, (void)code, (void)n_code;
	return false;
}

#endif
