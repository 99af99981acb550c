/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the kernel's registers of a thread on aarch64, and corrects those of an interrupted system call. */
#include "os/linux/user_regs.h"

#include "frozen/still.h"
#include "os/perf_events.h"

void sf_user_regs_load(const struct user_regs_struct *regs, struct sf_regs *ret)
{
	*ret = (struct sf_regs){ .pc = regs->pc };
	for (unsigned i = 0; i < 31; i++)
		sf_reg_set(ret, i, regs->regs[i]);
	sf_reg_set(ret, 31, regs->sp);
}

/* Nothing in these registers tells a thread in a system call from another one. */
int32_t sf_user_regs_syscall(const struct user_regs_struct *regs, bool *interrupted_ret)
{
	(void)regs;
	*interrupted_ret = false;
	return SF_SYSCALL_NONE;
}

uint64_t sf_user_regs_second_argument(const struct user_regs_struct *regs)
{
	return regs->regs[1];
}

bool sf_user_regs_saved(const uint64_t *saved, struct sf_regs *ret, int32_t *number_ret)
{
	(void)saved;
	(void)ret;
	(void)number_ret;
	return false;
}

/*
 * Not possible here: do_signal in arch/arm64/kernel/signal.c decides on the restart before it
 * comes to the trap, and the first argument is already overwritten by the result.
 */
bool sf_user_regs_mend(struct user_regs_struct *regs, int32_t tid)
{
	(void)regs;
	(void)tid;
	return false;
}

/* x0 to x30, sp and pc (asm/perf_regs.h). */
const uint64_t sf_perf_regs_mask = (UINT64_C(1) << 33) - 1;
const unsigned sf_perf_n_regs = 33;

void sf_perf_load_regs(const uint64_t *values, struct sf_regs *ret)
{
	*ret = (struct sf_regs){ .pc = values[32] };
	for (unsigned i = 0; i < 32; i++)
		sf_reg_set(ret, i, values[i]);
}

/* Before its end the call's result is not in x0 yet. */
uint64_t sf_perf_first_argument(const uint64_t *values)
{
	return values[0];
}
