/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timer coverage: compares a thread's number of samples with its CPU time, and finds threads that
 * their timer samples too seldom. Only the sampler's thread calls this.
 */
#include "agent/sampler/timer_coverage.h"

/*
 * Of so many that come at random less than half is met once in a thousand times: in a minute of CPU time at 250 ticks a
 * second there are 470 of those. Twice in a row is one in a million.
 */
#define JUDGED_RINGS 32
/* Of so many at random none is met once in nine million times. */
#define JUDGED_SILENT 16

void sf_timer_coverage_begin(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples)
{
	*coverage = (struct sf_timer_coverage){ .cpu_ns = cpu_ns, .n_samples = n_samples };
}

bool sf_timer_misses(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	const uint64_t used_ns = cpu_ns - coverage->cpu_ns;
	const bool was_seldom = coverage->was_seldom;
	const bool is_seldom = 2 * period_ns * (n_samples - coverage->n_samples) < used_ns;
	const bool is_silent = n_samples == coverage->n_samples;

	if (used_ns < (is_silent ? JUDGED_SILENT : JUDGED_RINGS) * period_ns)
		return false;
	*coverage = (struct sf_timer_coverage){ cpu_ns, n_samples, is_seldom };
	return is_silent || (is_seldom && was_seldom);
}
