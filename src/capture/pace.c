/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pace.h"

#define BURST_NS 50000000 /* of CPU time, that may be saved up */

void sf_pace_begin(struct sf_pace *pace, unsigned n_cpus, uint64_t now_ns, uint64_t cpu_ns)
{
	*pace = (struct sf_pace){ .n_cpus = n_cpus ? n_cpus : 1, .before_ns = now_ns,
				  .before_cpu_ns = cpu_ns,
				  .debt_ns = -(int64_t)BURST_NS * SF_PACE_SHARE };
}

static void account(struct sf_pace *pace, uint64_t now_ns, uint64_t cpu_ns)
{
	pace->debt_ns += (int64_t)((cpu_ns - pace->before_cpu_ns) * SF_PACE_SHARE);
	pace->debt_ns -= (int64_t)((now_ns - pace->before_ns) * pace->n_cpus);
	if (pace->debt_ns < -(int64_t)BURST_NS * SF_PACE_SHARE)
		pace->debt_ns = -(int64_t)BURST_NS * SF_PACE_SHARE;
	pace->before_ns = now_ns;
	pace->before_cpu_ns = cpu_ns;
}

uint64_t sf_pace_next(struct sf_pace *pace, uint64_t now_ns, uint64_t cpu_ns, uint64_t next_ns)
{
	uint64_t paid_ns = now_ns;

	account(pace, now_ns, cpu_ns);
	if (pace->debt_ns > 0)
		paid_ns += (uint64_t)pace->debt_ns / pace->n_cpus;
	pace->n_ticks++;
	if (paid_ns <= next_ns)
		return next_ns;
	pace->n_late++;
	return paid_ns;
}
