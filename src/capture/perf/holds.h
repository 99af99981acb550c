/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that perf holds, since its events do not show enough of them. There are two kinds.
 *
 * The first are threads of whose stacks the kernel's copies are not enough: a stack is deeper than these can be, or the
 * thread is on another stack than the one that it has left. Such a thread is held in place of its samples, and the hold has
 * their part of the thread's CPU time. A sample comes at a moment that nothing of the thread decides, and the hold must, too.
 * So a thread that runs for a hundredth of the time or more is held when it is displaced (ptrace/displaced.h). One that runs
 * less would be displaced too seldom: it is held after the batch, if it runs then.
 *
 * The second are threads with CPU time in the kernel, where the events may not sample it: the kernel has counted more for
 * them than their samples of user mode stand for. A thread that has such time is sought. If it runs for an eighth of the
 * time or more, it is held when it is displaced; else in each period, if it runs then. A thread that stands at the end of a
 * system call was in that call. Its sample stands for the CPU time since the thread's last hold, as far as there is time
 * beyond the samples of user mode. A thread that stands amid its own code was there, or in a page fault or an interrupt that
 * came there. Its sample stands for time that system calls have left over. Where threads may not be held, the time is the
 * loss `kernel`.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_HOLDS_H
#define SF_CAPTURE_PERF_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

struct sf_perf;
struct sf_perf_record;
struct sf_thread;

struct sf_perf_deep {
	unsigned n_due;       /* threads that are to be held, and have not slept for long */
	bool     is_prompt;   /* the holding thread gets its CPU at once */
};

struct sf_perf_kernel_time {
	bool     on;             /* threads are sought */
	unsigned n_sought;       /* so many, at the last period */
};

/* --- deep stacks --- */

/*
 * Whether the thread is to be held in place of this sample: walks have found the copies too short, or the longest copy there is
 * is certainly cut. Not of a sample whose copy has the thread's first frame: where a stack is deep at times, the thread is not
 * held at the others. The answer may change when a walk ends.
 */
bool sf_perf_deep_is(const struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record);

/* For one such sample. */
void sf_perf_deep_want(struct sf_perf *perf, struct sf_thread *thread);

/* After a batch: holds the threads that are due and do not wait to be displaced. */
void sf_perf_deep_hold(struct sf_perf *perf, uint64_t now_ns);

/* Of a thread that waits to be displaced, as a sf_ptrace_need_fn says it. */
uint64_t sf_perf_deep_need(const struct sf_perf *perf, const struct sf_thread *thread);

/* The thread has been displaced. */
void sf_perf_deep_catch(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns);

/* --- CPU time in the kernel --- */

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

/* --- both --- */

/* How many threads there are that may have to be displaced. */
unsigned sf_perf_n_to_displace(const struct sf_perf *perf);

/* Before a sleep until until_ns: aims at one of them, or lets the holding thread run on any CPU. */
void sf_perf_aim(struct sf_perf *perf, uint64_t until_ns);

/* After it: holds the thread that was displaced, if the budget has room for that. */
void sf_perf_catch_displaced(struct sf_perf *perf);

#endif
