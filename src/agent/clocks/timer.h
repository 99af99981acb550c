/* SPDX-License-Identifier: Apache-2.0 */
/* CPU clocks of threads, and POSIX timers that send our signal, by raw system calls. */
#ifndef SF_AGENT_CLOCKS_TIMER_H
#define SF_AGENT_CLOCKS_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* The number of a thread's CPU clock, for clock_gettime(2) and timer_create(2). Signal-safe. */
int32_t sf_agent_thread_clock(int32_t tid);
/* Its time, in one system call; false: the thread has ended. Signal-safe. */
bool sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret);

/*
 * Starts a timer that signals the thread `tid` (0: the process) every period_ns of `clock`. Stores its
 * number to *ret. False: the thread has ended, or there is no timer left (RLIMIT_SIGPENDING).
 * Signal-safe.
 */
bool sf_agent_timer_start(int32_t clock, int32_t tid, uint64_t period_ns, int32_t *ret);

#endif
