/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of whose stacks the kernel's copies are not enough: a stack is deeper than these can be, or the thread is on
 * another stack than the one that it has left. Such a thread is held in place of its samples, and the hold has their
 * part of the thread's CPU time.
 *
 * A sample comes at a moment that nothing of the thread decides, and the hold must, too. So a thread that runs for a
 * hundredth of the time or more is held when it is displaced (ptrace/displaced.h). One that runs less would be
 * displaced too seldom: it is held after the batch, if it runs then.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_DEEP_H
#define SF_CAPTURE_PERF_DEEP_H

#include <stdbool.h>
#include <stdint.h>

struct sf_perf;
struct sf_perf_record;
struct sf_thread;

struct sf_perf_deep {
	unsigned n_due;       /* threads that are to be held, and have not slept for long */
	bool     is_prompt;   /* the holding thread gets its CPU at once */
};

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

#endif
