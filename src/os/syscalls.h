/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the host: their names, and what an interruption does to them. */
#ifndef SF_OS_SYSCALLS_H
#define SF_OS_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/still.h"

/* "futex", or "syscall 999". SF_SYSCALL_FAULT: "page fault"; SF_SYSCALL_UNTOLD: "asleep". Returns ret. */
const char *sf_syscall_name(int32_t number, char *ret, size_t size);

/* The number of the system call of this name, or SF_SYSCALL_NONE. */
int32_t sf_syscall_number(const char *name);

/* Whether it is one of the calls in which threads usually sleep. */
bool sf_syscall_usually_sleeps(int32_t number);

/*
 * Whether a thread asleep in this call may be stopped and let go without the call failing
 * or returning early: only for calls that are known to restart. `args` decide where the kind of
 * file does (read from a pipe restarts, from a socket with a receive time-out fails).
 */
bool sf_syscall_restarts(int32_t pid, int32_t tid, int32_t number, const uint64_t args[6]);

/*
 * Whether the thread has more system-call filters (seccomp) than this one: its own, and not those of a container. The kernel goes on
 * with some calls by restart_syscall(2), and the program's author may have allowed the calls that the program makes, and no other.
 */
bool sf_syscall_has_own_filter(int32_t tid);

/*
 * Whether a call is there to wait or to give the CPU away, and takes hardly any CPU time of its own. `second`: its second
 * argument. By it futex(2) waits, or wakes another thread, which takes as long as a send.
 */
bool sf_syscall_only_waits(int32_t number, uint64_t second);

/*
 * Describes the object for which a blocked thread waits, for display: "futex 0x7f.. (a lock or
 * condition)", "fd 5 (pipe:[123])".
 */
void sf_syscall_describe(int32_t pid, int32_t number, const uint64_t args[6], char *ret,
			 size_t size);

#endif
