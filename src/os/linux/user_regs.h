/* SPDX-License-Identifier: Apache-2.0 */
/* The host's registers, as ptrace and perf events give them. One file per architecture. For src/os/linux only. */
#ifndef SF_OS_LINUX_USER_REGS_H
#define SF_OS_LINUX_USER_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "frozen/arch.h"

void sf_user_regs_load(const struct user_regs_struct *regs, struct sf_regs *ret);

/*
 * The registers that the kernel saved when a thread left user mode (os/task.h), and the number of its system call;
 * below 0: it is in none. False: it came from 32-bit code, or has never been in user mode.
 */
bool sf_user_regs_saved(const uint64_t *saved, struct sf_regs *ret, int32_t *number_ret);

/*
 * The system call at whose end a stopped thread stands, or SF_SYSCALL_NONE. *interrupted_ret: the stop broke the call
 * off, so the thread slept in it or was about to.
 */
int32_t sf_user_regs_syscall(const struct user_regs_struct *regs, bool *interrupted_ret);

/* ... and the second argument of that call. */
uint64_t sf_user_regs_second_argument(const struct user_regs_struct *regs);

/*
 * Turns an EINTR that only our stop caused into a restart, and what would go on by another call, for which the thread may be killed
 * (os/syscalls.h), into the same call anew; false when there is nothing to do.
 */
bool sf_user_regs_mend(struct user_regs_struct *regs, int32_t tid);

/*
 * The registers that a perf event samples (PERF_SAMPLE_REGS_USER); sf_perf_load_regs() takes them in ascending order of
 * their bits.
 */
extern const uint64_t sf_perf_regs_mask;

#endif
