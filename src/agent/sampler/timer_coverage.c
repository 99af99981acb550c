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
/* Of so many at random none is met once in 500 million times: with 250 samples a second in 23 days of CPU time. */
#define JUDGED_SILENT 20

void sf_timer_coverage_begin(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples)
{
	*coverage = (struct sf_timer_coverage){ .cpu_ns = cpu_ns, .n_samples = n_samples, .sampled_ns = cpu_ns, .n_sampled = n_samples };
}

static bool is_silent(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	if (n_samples != coverage->n_sampled) {
		coverage->n_sampled = n_samples;
		coverage->sampled_ns = cpu_ns;
	}
	return cpu_ns - coverage->sampled_ns >= JUDGED_SILENT * period_ns;
}

static bool is_seldom(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	const uint64_t used_ns = cpu_ns - coverage->cpu_ns;
	const bool was_seldom = coverage->was_seldom;

	if (used_ns < JUDGED_RINGS * period_ns)
		return false;
	coverage->was_seldom = 2 * period_ns * (n_samples - coverage->n_samples) < used_ns;
	coverage->cpu_ns = cpu_ns;
	coverage->n_samples = n_samples;
	return coverage->was_seldom && was_seldom;
}

bool sf_timer_misses(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	const bool seldom = is_seldom(coverage, cpu_ns, n_samples, period_ns);

	return is_silent(coverage, cpu_ns, n_samples, period_ns) || seldom;
}
