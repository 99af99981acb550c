/* SPDX-License-Identifier: Apache-2.0 */
/* On which CPU the calling thread runs, and how soon after it wakes. */
#ifndef SF_OS_CPU_H
#define SF_OS_CPU_H

#include <stdbool.h>

/* Moves the calling thread to a CPU; -1: lets it run wherever it might before. */
void sf_cpu_move(int cpu);

/*
 * Lets the calling thread run as soon as it wakes, as far as that is allowed: while it waits for a CPU, the threads that it
 * holds do not run. Where it may (CAP_SYS_NICE or RLIMIT_RTPRIO), it gets the lowest real-time priority. The kernel then
 * puts it in the place of an ordinary thread at once. Between ordinary threads the kernel may let the one that runs go on
 * until that thread sleeps or wakes another one, so the caller would find it there too often (capture/ptrace/displaced.h).
 * Threads and processes that the caller starts later are ordinary ones.
 */
void sf_cpu_prefer(void);

/*
 * Whether it may have that priority, by a try. Afterwards the calling thread, an ordinary one, is as before. *has_limit_ret: a
 * limit of real-time CPU time (RLIMIT_RTTIME) would end the process, so nothing was tried.
 */
bool sf_cpu_may_prefer(bool *has_limit_ret);

#endif
