/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timer coverage: whether a thread's timer expires while the thread runs. A timer expires only at the
 * kernel's own ticks. A thread that runs between two ticks, for example because a tick wakes it, gets
 * too few samples or none. Such a thread needs a perf clock. A thread can also be under-sampled by
 * chance: its clock is not switched for that, because a perf clock costs four times as much
 * (docs/benchmarks.md).
 */
#ifndef SF_AGENT_SAMPLER_TIMER_COVERAGE_H
#define SF_AGENT_SAMPLER_TIMER_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

struct sf_timer_coverage {
	uint64_t cpu_ns, n_samples; /* at the last judgement */
	bool     was_seldom;        /* its result: too few samples */
	uint64_t sampled_ns, n_sampled; /* when a look last found a new sample */
};

/* Starts a new measurement at these counts. */
void sf_timer_coverage_begin(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples);

/*
 * Compares the thread's CPU clock with its number of samples, of which one is due for each period_ns
 * of CPU time. True: the thread gets too few samples, and chance does not explain it. All CPU time that was missed is
 * put down to the samples around it. So a thread that has had no sample for long is found sooner than one that has too few.
 */
bool sf_timer_misses(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns);

#endif
