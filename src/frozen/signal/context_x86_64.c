/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context that the kernel passes to a signal handler: its registers (asm/sigcontext.h), and the
 * restart of a system call that failed because of our signal. Signal-safe; called in the handler.
 *
 * After a failed call the kernel does not keep the call's number: rax holds the result. All
 * arguments are still in their registers, so only the number is missing to make the call again. The
 * number is in the code: libc's wrappers load it as a constant just before the `syscall`, with at
 * most loads of arguments from the stack in between. This was checked in glibc 2.36 (Debian 12) for
 * every blocking call that sf_call_mends names, in both branches of cancellation points. Two cases
 * are not covered, because the number is not in the code: musl's cancellation points, and libc's
 * syscall(2), unless the agent replaces it (agent/interpose/syscall.c).
 *
 * Calls that SA_RESTART restarts never fail because of our signal: their EINTR comes from the program.
 *
 * For the other calls one question is left: our signal may have interrupted the call, or a handler of
 * the program may have interrupted it and returned just before. In the second case the restarted call
 * would wait for an event that has happened already. Where our handler called that handler, the context
 * is marked. Otherwise the question stays open. A program that waits for a signal and a
 * file with poll() alone has the same race without us: it loses a signal that comes just before
 * poll(). Calls that wait for a signal, or unblock signals only while they wait, exist to avoid this
 * race. Such calls are restarted only in a program without a handler.
 */
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "frozen/signal/interrupted_calls.h"
#include "frozen/signal/context.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

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

/* Of the system call that was made last (System V ABI, AMD64 supplement, A.2.1). */
static void arguments(const greg_t *gregs, uint64_t ret[6])
{
	static const uint8_t places[6] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };

	for (unsigned i = 0; i < 6; i++)
		ret[i] = (uint64_t)gregs[places[i]];
}

/* The signals whose handlers run as soon as ours returns. */
static uint64_t about_to_be_delivered(const ucontext_t *context)
{
	uint64_t pending = 0, blocked;

	memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	sf_raw2(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending & ~blocked;
}

/*
 * Two signals interrupted one call, and the kernel delivered ours first. Because of our SA_RESTART
 * the kernel has set the context back to the call. But the program's signal, whose handler runs as
 * soon as ours returns, must end the call with EINTR. rcx shows that the context is at a call:
 * `syscall` leaves its return address there.
 */
void sf_context_give_way(const struct sf_handler_config *config, void *ucontext)
{
	ucontext_t *context = ucontext;
	greg_t *gregs = context->uc_mcontext.gregs;

	if (gregs[REG_RCX] != gregs[REG_RIP] + 2 || gregs[REG_RAX] < 0 ||
	    gregs[REG_RAX] > INT16_MAX || !sf_call_mends((int32_t)gregs[REG_RAX]))
		return;
	if (!sf_actions_break_off(about_to_be_delivered(context), config->signal))
		return;
	gregs[REG_RAX] = -EINTR;
	gregs[REG_RIP] += 2;
}

/*
 * A mark that is no address. The mark stands in rcx, which every `syscall` overwrites, and which no program reads after a
 * call.
 */
#define LEFT_INTERRUPTED INT64_C(0x5ac1a11d0e147e5e)

/*
 * A signal of ours that came while the program's handler ran is delivered as soon as the context is
 * restored, so this is frequent where the thread waits for a CPU in the handler.
 */
void sf_context_leave_interrupted(void *ucontext)
{
	ucontext_t *context = ucontext;
	greg_t *gregs = context->uc_mcontext.gregs;

	if (gregs[REG_RAX] == -EINTR && gregs[REG_RCX] == gregs[REG_RIP])
		gregs[REG_RCX] = LEFT_INTERRUPTED;
}

bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret)
{
	const ucontext_t *context = ucontext;

	*pc_ret = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	return context->uc_mcontext.gregs[REG_RAX] == -EINTR &&
	       context->uc_mcontext.gregs[REG_RCX] != LEFT_INTERRUPTED;
}

bool sf_context_mend(const struct sf_handler_config *config, void *ucontext, const uint8_t *code, size_t n_code)
{
	ucontext_t *context = ucontext;
	greg_t *gregs = context->uc_mcontext.gregs;
	uint64_t args[6];
	int32_t number;

	if (gregs[REG_RAX] != -EINTR)
		return false;
	if (config->marked_syscall && (uint64_t)gregs[REG_RIP] == config->marked_syscall)
		number = *(const int32_t *)(uintptr_t)gregs[REG_RSP];
	else
		number = interrupted_call(code, n_code);
	/* The program takes its own handler for the interruption. Another pending signal of ours mends by itself. */
	if (number < 0 || !sf_call_mends(number) ||
	    sf_actions_any(about_to_be_delivered(context), config->signal))
		return false;
	arguments(gregs, args);
	if (sf_call_waits_for_signal(number, args) && sf_actions_any(SF_ACTIONS_INTERRUPTING, config->signal))
		return false;
	if (sf_actions_ours_restarts(config->signal) && sf_call_restarts(number, args))
		return false; /* not from a signal of ours: a handler of the program's has just
			       * returned */
	gregs[REG_RAX] = number;
	gregs[REG_RIP] -= 2;
	return true;
}
