/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the engine's own cost (--max-cost; capture/ptrace/overhead_limit.h). The kernel samples at the rate that
 * was asked for. Where walking all of these samples would cost more than the limit allows, a part of them is passed
 * over, chosen at random. A sample that is passed over costs a few nanoseconds. The CPU time of its thread goes to the
 * thread's next sample.
 *
 * The debt of the overhead limit is the sum of what was spent above the limit. The larger the debt, the smaller the part
 * that is walked. So the part settles where the cost is what the limit allows. Walks of sleeps give way first (sleeps.h).
 * What else the engine does for many threads, as meeting them and looking at them, may take all of the limit. Samples
 * of CPU time have room for half of the limit all the same.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_BUDGET_H
#define SF_CAPTURE_PERF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define SF_PERF_ALL (UINT64_C(1) << 32) /* the part that is walked: all */
#define SF_PERF_WALK_COST_NS 25000      /* of walking and recording one sample, at the least */

struct sf_perf_budget {
	uint64_t part;                 /* of SF_PERF_ALL */
	uint64_t n_samples, n_over;    /* that came; that were passed over */
	uint64_t n_before;             /* n_samples when the part was set */
	uint64_t least_ns, wanted_ns;  /* in the last batches: time that samples may take at the least, and that all would take */
};

void sf_perf_budget_begin(struct sf_perf_budget *budget);

/*
 * Sets the part, where the limit puts off what is due now by so much time (sf_overhead_limit_next), and where it allows
 * for `allowed_ns` of CPU time since the last call. A walk usually takes `walk_ns` (sf_relay_usual_walk_ns).
 */
void sf_perf_budget_set(struct sf_perf_budget *budget, uint64_t late_ns, uint64_t allowed_ns, uint64_t walk_ns);

/* Whether the sample of this time is walked. The answer for one time is the same until the part is set anew. */
bool sf_perf_budget_has_room(const struct sf_perf_budget *budget, uint64_t time_ns);

/* Of samples that come `times` as often as was asked for: whether this one is due, and whether it is due and walked. */
bool sf_perf_budget_is_due(uint32_t times, uint64_t time_ns);
bool sf_perf_budget_has_room_for(const struct sf_perf_budget *budget, uint32_t times, uint64_t time_ns);

#endif
