/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the engine's own cost (--max-cost; capture/ptrace/overhead_limit.h). The kernel samples at the rate that
 * was asked for. Where walking all of these samples would cost more than the limit allows, a part of them is passed
 * over, chosen at random. A sample that is passed over costs a few nanoseconds. The CPU time of its thread goes to the
 * thread's next sample.
 *
 * The debt of the overhead limit is the sum of what was spent above the limit. The larger the debt, the smaller the part
 * that is walked. So the part settles where the cost is what the limit allows.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_BUDGET_H
#define SF_CAPTURE_PERF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define SF_PERF_ALL (UINT64_C(1) << 32) /* the part that is walked: all */

struct sf_perf_budget {
	uint64_t part;                 /* of SF_PERF_ALL */
	uint64_t n_samples, n_over;    /* that came; that were passed over */
};

void sf_perf_budget_begin(struct sf_perf_budget *budget);

/* Sets the part, where the limit puts off what is due now by so much time (sf_overhead_limit_next). */
void sf_perf_budget_set(struct sf_perf_budget *budget, uint64_t late_ns);

/* Whether the sample of this time is walked. The answer for one time is the same until the part is set anew. */
bool sf_perf_budget_has_room(const struct sf_perf_budget *budget, uint64_t time_ns);

#endif
