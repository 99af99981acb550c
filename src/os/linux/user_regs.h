/* SPDX-License-Identifier: Apache-2.0 */
/* The host's registers, as ptrace gives them. One file per architecture. For src/os/linux only. */
#ifndef SF_OS_LINUX_USER_REGS_H
#define SF_OS_LINUX_USER_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "frozen/arch.h"

void sf_user_regs_load(const struct user_regs_struct *regs, struct sf_regs *ret);

/* Turns an EINTR that only our stop caused into a restart; false when there is nothing to do. */
bool sf_user_regs_mend(struct user_regs_struct *regs);

/* The registers that are known of a thread asleep in the kernel (os/task.h). */
void sf_user_regs_asleep(int32_t syscall, const uint64_t args[6], uint64_t sp, uint64_t pc,
			 struct sf_regs *ret);

/*
 * The number that the code just before pc, where a thread sleeps in a system call, loads for it; -1
 * where the code does not show it. A call that goes on after an interruption does so as
 * restart_syscall (syscall(2) has no more to say), which says nothing to a reader.
 */
int32_t sf_user_regs_loaded_syscall(int32_t pid, uint64_t pc);

#endif
