/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the events of the threads are replaced by one for each CPU, which counts whatever runs there. Samples of
 * processes that are not watched are dropped. There are three reasons.
 *
 * Short lives: a thread's event counts from the thread's beginning, so a thread or process that ends within a period of
 * CPU time has no sample. By events of the CPUs each moment is as likely to be sampled as another one.
 *
 * Short turns: the kernel stops and starts the timer of a thread's event at each switch, in the thread's own CPU time. By
 * events of the CPUs, how many samples a thread has is more a matter of chance. So this is no reason where threads use
 * less than a period each.
 *
 * Little use: a thread that uses less than a period of CPU time in all has no sample, and of many threads that use less
 * than a five-hundredth of a CPU each that may be most of the CPU time.
 *
 * From then on threads without a sample are known by their samples, the first of which stands for a period: so their sum is
 * right on average. Their CPU time from before that is their first samples', too, or a loss where they have none.
 *
 * A user who may not sample all that runs on a CPU has finer samples instead, where lives are short or threads use little: the
 * events of the threads have a shorter period from then on. Of a thread that has used two periods as they were asked for, so many
 * samples are walked as were asked for.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_WIDEN_H
#define SF_CAPTURE_PERF_WIDEN_H

#include "capture/ptrace/unsampled.h"

struct sf_perf;

struct sf_perf_widening {
	struct sf_unseen before;      /* at the last look ... */
	uint64_t looked_ns;           /* ... which was then */
	uint64_t began_ns;            /* the first look */
	uint64_t next_ns, pause_ns;   /* between two looks */
	bool refused;                 /* this user may not sample all that runs on a CPU ... */
	bool is_finer;                /* ... and has finer samples in place of that, or asked for samples that are as fine */
};

/* Looks, now and then, whether there is a reason, and widens the events then. Of a capture of single processes. */
void sf_perf_widen_if_short(struct sf_perf *perf, uint64_t now_ns);

/* Whether the events are of these processes only because others are dropped. */
bool sf_perf_is_wide(const struct sf_perf *perf);

/* Whether records of this process count. */
bool sf_perf_concerns(const struct sf_perf *perf, int32_t pid);

#endif
