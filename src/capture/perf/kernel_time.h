/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time in the kernel, where the events may not sample it: what the kernel has counted for a thread beyond its
 * samples of user mode.
 *
 * A thread that has such time is sought. If it runs for an eighth of the time or more, it is held when it is displaced
 * (ptrace/displaced.h); else in each period, if it runs then. A thread that stands
 * at the end of a system call was in that call. Its sample stands for the CPU time since the thread's last hold, as far
 * as there is time beyond the samples of user mode. A thread that stands amid its own code was there, or in a page
 * fault or an interrupt that came there. Its sample stands for time that system calls have left over. Where threads may
 * not be held, the time is the loss `kernel`.
 *
 * For the holding thread.
 */
#ifndef SF_CAPTURE_PERF_KERNEL_TIME_H
#define SF_CAPTURE_PERF_KERNEL_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct sf_perf;
struct sf_thread;

struct sf_perf_kernel_time {
	bool     on;             /* threads are sought */
	unsigned n_sought;       /* so many, at the last period */
};

/* When the holding thread has begun. */
void sf_perf_kernel_time_begin(struct sf_perf *perf);

/* In a batch, before a thread's samples take its CPU time: sets that apart which is beyond them. */
void sf_perf_kernel_time_split(struct sf_perf *perf, struct sf_thread *thread);

/* After a look at a thread: whether it is to be sought. */
void sf_perf_kernel_time_look(struct sf_perf *perf, struct sf_thread *thread);

/* Of a thread that is sought, as a sf_ptrace_need_fn says it. */
uint64_t sf_perf_kernel_time_need(const struct sf_perf *perf, const struct sf_thread *thread);

/* The thread has been displaced. */
void sf_perf_kernel_time_catch(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns);

/* After a batch: looks at the threads that are sought, and holds those that do not wait to be displaced. */
void sf_perf_kernel_time_seek(struct sf_perf *perf, uint64_t now_ns);

#endif
