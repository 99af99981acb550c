/* SPDX-License-Identifier: Apache-2.0 */
/* Steps a thread, and accounts for its calls. */
#include "stepping.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/linux/user_regs.h"

#define RUN_NS 100000000 /* without a stop, of a thread that runs through a call */
#define POLL_US 20

static int32_t read_from;

static bool read_thread(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)addr, size };

	(void)reader;
	return process_vm_readv(read_from, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool stepping_open(struct stepping *stepping, int32_t pid, int32_t tid)
{
	struct sf_error err = { 0 };

	stepping->pid = pid;
	stepping->tid = read_from = tid;
	if (sf_walker_init(&stepping->walker, 256, &err) && sf_walker_prepare(&stepping->walker, pid, &err))
		return true;
	fprintf(stderr, "%s\n", err.text);
	return false;
}

/* Signals that come before the stop are delivered. */
bool stepping_stop(struct stepping *stepping)
{
	int status;

	stepping->n_calls = 0;
	stepping->signal = 0;
	if (ptrace(PTRACE_INTERRUPT, stepping->tid, NULL, NULL) != 0)
		return false;
	for (;;) {
		if (waitpid(stepping->tid, &status, __WALL) != stepping->tid || !WIFSTOPPED(status))
			return false;
		if (status >> 16)
			return ptrace(PTRACE_GETREGS, stepping->tid, NULL, &stepping->regs) == 0;
		ptrace(PTRACE_CONT, stepping->tid, NULL, (void *)(intptr_t)WSTOPSIG(status));
	}
}

bool stepping_seize(struct stepping *stepping)
{
	return ptrace(PTRACE_SEIZE, stepping->tid, NULL, NULL) == 0 && stepping_stop(stepping);
}

bool stepping_run(struct stepping *stepping)
{
	return ptrace(PTRACE_CONT, stepping->tid, NULL, (void *)(intptr_t)stepping->signal) == 0;
}

void stepping_release(struct stepping *stepping)
{
	ptrace(PTRACE_DETACH, stepping->tid, NULL, (void *)(intptr_t)stepping->signal);
}

bool stepping_read(const struct stepping *stepping, void *ret, uint64_t addr, size_t size)
{
	(void)stepping;
	return read_thread(NULL, ret, addr, size);
}

const struct stepping_call *stepping_call(const struct stepping *stepping, unsigned i)
{
	return &stepping->calls[stepping->n_calls - 1 - i];
}

bool stepping_stands(const struct stepping *stepping, unsigned i)
{
	const struct stepping_call *call = stepping_call(stepping, i);
	uint64_t pc;

	return stepping_read(stepping, &pc, call->sp, sizeof(pc)) && pc == call->pc;
}

const struct sf_trace *stepping_walk(struct stepping *stepping)
{
	struct sf_still still = { .pid = stepping->pid, .tid = stepping->tid, .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE,
				  .memory = { .read = read_thread }, .time_ns = sf_now_ns() };

	sf_user_regs_load(&stepping->regs, &still.regs);
	sf_walker_walk(&stepping->walker, &still, NULL);
	return &stepping->walker.trace;
}

static bool is_call(const uint8_t *code)
{
	code += (code[0] & 0xf0) == 0x40;
	return code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2);
}

/* pop 8(%rbp), in SBCL's code: the return address goes to where the caller has made room for it. */
static bool moves_return_address(const uint8_t *code)
{
	return code[0] == 0x8f && code[1] == 0x45 && code[2] == 8;
}

static bool is_return(const uint8_t *code)
{
	return code[0] == 0xc3 || code[0] == 0xc2;
}

/* pop, in OCaml's runtime too: the return address is kept elsewhere, and is also just below sp still. */
static bool is_pop(const uint8_t *code)
{
	code += (code[0] & 0xf0) == 0x40;
	return (code[0] & 0xf8) == 0x58 || (code[0] == 0x8f && (code[1] >> 3 & 7) == 0);
}

static void push_call(struct stepping *stepping, struct stepping_call call)
{
	if (stepping->n_calls == STEPPING_CALLS)
		memmove(stepping->calls, stepping->calls + 1, --stepping->n_calls * sizeof(stepping->calls[0]));
	stepping->calls[stepping->n_calls++] = call;
}

/* The instruction at `before` was stepped over. */
static void account(struct stepping *stepping, const struct user_regs_struct *before, const uint8_t *code)
{
	const struct user_regs_struct *after = &stepping->regs;
	struct stepping_call call = { .sp = after->rsp };
	unsigned n_before;

	if (moves_return_address(code) && stepping->n_calls && stepping_call(stepping, 0)->sp == before->rsp)
		stepping->calls[stepping->n_calls - 1].sp = after->rbp + 8;
	n_before = stepping->n_calls;
	if (n_before && after->rsp > before->rsp)
		stepping->calls[n_before - 1].popped = is_pop(code) && stepping_call(stepping, 0)->sp == before->rsp ? 8 : 0;
	while (stepping->n_calls && after->rsp > stepping_call(stepping, 0)->sp + stepping_call(stepping, 0)->popped)
		stepping->n_calls--;
	/*
	 * A function of SBCL's that returns more than three values leaves them on the stack, with its return address
	 * above them.
	 */
	if (is_return(code) && n_before && stepping->n_calls == n_before && after->rip == stepping_call(stepping, 0)->pc)
		stepping->n_calls--;
	if (is_call(code) && after->rsp == before->rsp - 8 && stepping_read(stepping, &call.pc, call.sp, 8) &&
	    call.pc - before->rip <= 8)
		push_call(stepping, call);
}

/* The signal that the step ended with and the program gets; 0: the step itself ended it. SBCL's code stops itself by int3. */
static int signal_of_program(const struct stepping *stepping, int status)
{
	siginfo_t info;

	if (WSTOPSIG(status) != SIGTRAP)
		return WSTOPSIG(status);
	return ptrace(PTRACE_GETSIGINFO, stepping->tid, NULL, &info) == 0 && info.si_code == SI_KERNEL ? SIGTRAP : 0;
}

bool stepping_step(struct stepping *stepping)
{
	const struct user_regs_struct before = stepping->regs;
	uint8_t code[4] = { 0 };
	int status;

	stepping_read(stepping, code, before.rip, sizeof(code));
	if (ptrace(PTRACE_SINGLESTEP, stepping->tid, NULL, (void *)(intptr_t)stepping->signal) != 0 ||
	    waitpid(stepping->tid, &status, __WALL) != stepping->tid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, stepping->tid, NULL, &stepping->regs) != 0)
		return false;
	stepping->signal = signal_of_program(stepping, status);
	account(stepping, &before, code);
	return true;
}

/* The processor stops the thread at this address, by a debug register. 0: nowhere. */
static bool set_breakpoint(const struct stepping *stepping, uint64_t pc)
{
	const uint64_t enabled = pc != 0;

	return ptrace(PTRACE_POKEUSER, stepping->tid, offsetof(struct user, u_debugreg[0]), pc) == 0 &&
	       ptrace(PTRACE_POKEUSER, stepping->tid, offsetof(struct user, u_debugreg[7]), enabled) == 0;
}

/* Interrupts the thread if it has not stopped after RUN_NS. False: it has ended. */
static bool wait_for_stop(struct stepping *stepping)
{
	const uint64_t end_ns = sf_now_ns() + RUN_NS;
	bool interrupted = false;
	int status;
	pid_t got;

	while ((got = waitpid(stepping->tid, &status, __WALL | (interrupted ? 0 : WNOHANG))) == 0) {
		if (sf_now_ns() > end_ns)
			interrupted = ptrace(PTRACE_INTERRUPT, stepping->tid, NULL, NULL) == 0;
		else
			usleep(POLL_US);
	}
	if (got != stepping->tid || !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, stepping->tid, NULL, &stepping->regs) != 0)
		return false;
	stepping->signal = status >> 16 ? 0 : signal_of_program(stepping, status);
	return true;
}

/* The stop at the breakpoint may be of another call from the same place, by code that the innermost one has called. */
bool stepping_run_call(struct stepping *stepping)
{
	const struct stepping_call call = *stepping_call(stepping, 0);
	const uint64_t end_ns = sf_now_ns() + RUN_NS;
	bool fine = set_breakpoint(stepping, call.pc);

	while (fine && stepping->regs.rsp <= call.sp && sf_now_ns() < end_ns)
		fine = stepping_run(stepping) && wait_for_stop(stepping);
	while (stepping->n_calls && stepping->regs.rsp > stepping_call(stepping, 0)->sp)
		stepping->n_calls--;
	return fine && set_breakpoint(stepping, 0);
}
