/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CPU clocks that a process may use here for its own threads, by a trial on the calling thread. */
#ifndef SF_OS_CPU_CLOCKS_H
#define SF_OS_CPU_CLOCKS_H

#include <stdbool.h>

#include "base/error.h"

/* A perf software clock of the calling thread, in user space only. If not, what would help. */
bool sf_perf_clock_works(struct sf_error *err);

/* Whether that would also work for a user without privileges. */
bool sf_perf_clock_works_unprivileged(struct sf_error *err);

/* A POSIX timer on the calling thread's CPU clock. */
bool sf_thread_timer_works(struct sf_error *err);

#endif
