/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are walked, and which are passed over to keep the cost below its limit. */
#include "capture/perf/budget.h"

#include "frozen/memory/hash.h"
#include "frozen/random.h"

#define HALF_NS 100000000 /* the limit puts off what is due by so much: half of the samples are passed over */

void sf_perf_budget_begin(struct sf_perf_budget *budget)
{
	*budget = (struct sf_perf_budget){ .part = SF_PERF_ALL };
}

void sf_perf_budget_set(struct sf_perf_budget *budget, uint64_t late_ns)
{
	budget->part = SF_PERF_ALL * HALF_NS / (HALF_NS + late_ns);
}

bool sf_perf_budget_has_room(const struct sf_perf_budget *budget, uint64_t time_ns)
{
	uint64_t state = sf_hash(time_ns, 64) | 1;

	return sf_random(&state) >> 32 < budget->part;
}
