/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the kernel's registers of a thread on x86-64, and corrects those of an interrupted system call. */
#include "os/linux/user_regs.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <string.h>

#include "frozen/signal/interrupted_calls.h"
#include "frozen/still.h"
#include "os/perf_events.h"
#include "os/syscalls.h"
#include "os/task.h"

#define CODE_64 0x33 /* the segment of 64-bit code: __USER_CS */

/* DWARF numbers: System V psABI, AMD64 supplement, figure 3.36. */
void sf_user_regs_load(const struct user_regs_struct *regs, struct sf_regs *ret)
{
	const uint64_t values[16] = {
		regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp,
		regs->rsp, regs->r8,  regs->r9,	 regs->r10, regs->r11, regs->r12, regs->r13,
		regs->r14, regs->r15,
	};

	*ret = (struct sf_regs){ .pc = regs->rip };
	for (unsigned i = 0; i < 16; i++)
		sf_reg_set(ret, i, values[i]);
}

/* The system call whose restart or return the thread stands before, or SF_SYSCALL_NONE. */
static int32_t syscall_of(const struct user_regs_struct *regs)
{
	return (int64_t)regs->orig_rax >= 0 ? (int32_t)regs->orig_rax : SF_SYSCALL_NONE;
}

/*
 * The kernel's struct pt_regs is the begin of struct user_regs_struct (arch/x86/include/asm/ptrace.h). FRED has flags
 * above `cs`.
 */
bool sf_user_regs_saved(const uint64_t *saved, struct sf_regs *ret, int32_t *number_ret)
{
	struct user_regs_struct regs = { 0 };

	memcpy(&regs, saved, SF_TASK_SAVED * sizeof(*saved));
	sf_user_regs_load(&regs, ret);
	*number_ret = syscall_of(&regs);
	return ret->pc && (regs.cs & 0xffff) == CODE_64;
}

/*
 * In the trap that follows PTRACE_INTERRUPT, rax contains the result of the system call. The kernel has
 * not yet decided whether to restart the call: arch_do_signal_or_restart in arch/x86/kernel/signal.c
 * decides after get_signal, in which the trap is. ERESTARTNOHAND: restart, unless a signal handler is
 * about to run (include/linux/errno.h).
 */
#define ERESTARTNOHAND 514
#define ERESTARTSYS 512           /* the first of such results ... */
#define ERESTART_RESTARTBLOCK 516 /* ... and the last */

int32_t sf_user_regs_syscall(const struct user_regs_struct *regs, bool *interrupted_ret)
{
	const int64_t result = (int64_t)regs->rax;
	const int32_t number = syscall_of(regs);

	*interrupted_ret = number >= 0 && (result == -EINTR || (result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK));
	return number;
}

uint64_t sf_user_regs_second_argument(const struct user_regs_struct *regs)
{
	return regs->rsi;
}

static bool is_to_mend(const struct user_regs_struct *regs, int32_t tid)
{
	const int32_t number = syscall_of(regs);

	if (number < 0)
		return false;
	if ((int64_t)regs->rax == -ERESTART_RESTARTBLOCK)
		return sf_syscall_has_own_filter(tid);
	return (int64_t)regs->rax == -EINTR && sf_call_mends(number);
}

bool sf_user_regs_mend(struct user_regs_struct *regs, int32_t tid)
{
	if (!is_to_mend(regs, tid))
		return false;
	regs->rax = (uint64_t)-ERESTARTNOHAND;
	return true;
}

/* From ax to ip, and r8 to r15: what is between are flags and segments (asm/perf_regs.h). */
#define BITS(first, last) ((UINT64_C(2) << (last)) - (UINT64_C(1) << (first)))
const uint64_t sf_perf_regs_mask = BITS(PERF_REG_X86_AX, PERF_REG_X86_IP) | BITS(PERF_REG_X86_R8, PERF_REG_X86_R15);
const unsigned sf_perf_n_regs = 17;

void sf_perf_load_regs(const uint64_t *values, struct sf_regs *ret)
{
	/* The DWARF numbers of ax, bx, cx, dx, si, di, bp and sp. */
	static const uint8_t numbers[] = { 0, 3, 2, 1, 4, 5, 6, 7 };

	*ret = (struct sf_regs){ .pc = values[PERF_REG_X86_IP] };
	for (unsigned i = 0; i < sizeof(numbers); i++)
		sf_reg_set(ret, numbers[i], values[i]);
	for (unsigned i = 8; i < 16; i++)
		sf_reg_set(ret, i, values[i + 1]);
}

uint64_t sf_perf_first_argument(const uint64_t *values)
{
	return values[PERF_REG_X86_DI];
}
