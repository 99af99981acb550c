/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps a thread of a Java virtual machine through its code, one instruction after the other, and has our walker say who called the
 * routine that it stands in. The truth is the list of calls that were stepped over and have not returned. The interpreter
 * pushes return addresses without a call, so the truth says nothing of what it jumps to (adapters, say): only hand-written
 * routines are judged. Each address is walked twice at most.
 *
 *     step_routines PID TID STEPS
 *
 * Only steps in the machine's generated code count.
 * Prints a line for each answer that is not proved and right, and at the end how many there were of each.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "frozen/hotspot/hotspot.h"
#include "os/clock.h"
#include "os/linux/user_regs.h"
#include "session/walker.h"

#define MAX_CALLS 4096
#define TABLE (1u << 20)
#define VISITS 2

struct call {
	uint64_t sp, pc;                 /* of the return address; the address */
};

static struct call calls[MAX_CALLS];
static unsigned n_calls;
static uint64_t visited[TABLE];
static uint8_t visits[TABLE];
static struct sf_walker walker;
static int32_t pid, tid;
static unsigned long proved, guessed, wrong, missing, elsewhere;

static bool read_thread(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)addr, size };

	(void)reader;
	return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool is_due(uint64_t pc)
{
	uint32_t i = (uint32_t)(pc * 0x9e3779b97f4a7c15u >> 44);

	while (visited[i] && visited[i] != pc)
		i = (i + 1) % TABLE;
	visited[i] = pc;
	return visits[i]++ < VISITS;
}

static const struct sf_runtime *machine(void)
{
	const struct sf_process_runtimes *runtimes = sf_walker_runtimes(&walker, pid);

	return runtimes ? runtimes->all.attached[SF_RUNTIME_HOTSPOT] : NULL;
}

static bool is_hand_written(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_reader memory = { .read = read_thread };
	struct sf_blob blob;

	return sf_hotspot_blob((const struct sf_hotspot *)runtime, &memory, pc, &blob) && blob.class == SF_BLOB_STUBS;
}

/* Deoptimization replaces frames, and with them return addresses. */
static bool call_still_stands(void)
{
	const struct call *last = &calls[n_calls - 1];
	uint64_t pc;

	return n_calls && read_thread(NULL, &pc, last->sp, sizeof(pc)) && pc == last->pc;
}

static void complain(const char *what, uint64_t pc)
{
	const struct sf_frame *frames = walker.trace.frames;

	printf("%s at 0x%" PRIx64 " (%+" PRId64 "): called from 0x%" PRIx64 ", not 0x%" PRIx64 " by %s\n", what, pc,
	       (int64_t)(pc - frames[0].token), calls[n_calls - 1].pc, walker.trace.n_frames > 1 ? frames[1].pc : 0,
	       walker.trace.n_frames > 1 ? sf_via_word(frames[1].via) : "nothing");
}

static void judge(const struct user_regs_struct *regs)
{
	struct sf_still still = { .pid = pid, .tid = tid, .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE,
				  .memory = { .read = read_thread }, .time_ns = sf_now_ns() };
	const struct sf_frame *frames = walker.trace.frames;

	sf_user_regs_load(regs, &still.regs);
	sf_walker_walk(&walker, &still);
	if (walker.trace.n_frames < 2)
		missing++, complain("no caller", regs->rip);
	else if (frames[1].pc != calls[n_calls - 1].pc || frames[1].sp != calls[n_calls - 1].sp + 8)
		wrong++, complain(frames[1].via == SF_VIA_GUESS ? "a wrong guess" : "wrong", regs->rip);
	else if (frames[1].via == SF_VIA_GUESS)
		guessed++, complain("a right guess", regs->rip);
	else
		proved++;
}

static void look(const struct sf_runtime *runtime, const struct user_regs_struct *regs)
{
	if (!n_calls || !is_due(regs->rip))
		return;
	if (call_still_stands() && is_hand_written(runtime, regs->rip))
		judge(regs);
	else
		elsewhere++;
}

static bool is_call(const uint8_t *code)
{
	code += (code[0] & 0xf0) == 0x40;
	return code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2);
}

/* The instruction at `before` was stepped over. */
static void account(const struct user_regs_struct *before, const uint8_t *code, const struct user_regs_struct *after)
{
	struct call call = { .sp = after->rsp };

	while (n_calls && after->rsp > calls[n_calls - 1].sp)
		n_calls--;
	if (!is_call(code) || after->rsp != before->rsp - 8 || !read_thread(NULL, &call.pc, call.sp, 8) ||
	    call.pc - before->rip > 8)
		return;
	if (n_calls == MAX_CALLS) {
		memmove(calls, calls + 1, (MAX_CALLS - 1) * sizeof(calls[0]));
		n_calls--;
	}
	calls[n_calls++] = call;
}

/* False: it has ended. */
static bool step(int signal_number, int *stopped_ret)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)signal_number) != 0 ||
	    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return false;
	*stopped_ret = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	return true;
}

static bool go_through(unsigned long steps)
{
	struct user_regs_struct before, now;
	uint8_t code[4] = { 0 };
	int signal_number = 0;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &before) != 0)
		return false;
	for (unsigned long i = 0; i < steps;) {
		const struct sf_runtime *runtime = machine();

		read_thread(NULL, code, before.rip, sizeof(code));
		if (!step(signal_number, &signal_number) || ptrace(PTRACE_GETREGS, tid, NULL, &now) != 0)
			return false;
		account(&before, code, &now);
		if (runtime && now.rip >= runtime->start && now.rip < runtime->end) {
			look(runtime, &now);
			i++;
		}
		before = now;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct sf_error err = { 0 };
	bool fine;
	int status;

	if (argc != 4)
		return 2;
	pid = atoi(argv[1]);
	tid = atoi(argv[2]);
	if (!sf_walker_init(&walker, 64, &err) || !sf_walker_prepare(&walker, pid, &err) || !machine()) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
	    waitpid(tid, &status, __WALL) != tid)
		return 1;
	fine = go_through(strtoul(argv[3], NULL, 10));
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	printf("proved %lu, guessed %lu, wrong %lu, without a caller %lu; elsewhere %lu\n", proved, guessed, wrong, missing,
	       elsewhere);
	return fine ? 0 : 1;
}
