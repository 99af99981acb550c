/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are walked, and which are passed over to keep the cost below its limit. */
#include "capture/perf/budget.h"

#include "frozen/memory/hash.h"
#include "frozen/random.h"

#define LEAST_PART 2      /* of the limit, one part of so many is for samples of CPU time whatever else is spent */
#define BATCHES 16        /* that count for what samples would take */
#define HALF_NS 100000000 /* the limit puts off what is due by so much: half of the samples are passed over */

void sf_perf_budget_begin(struct sf_perf_budget *budget)
{
	*budget = (struct sf_perf_budget){ .part = SF_PERF_ALL };
}

/* Of the last batches together: a single one may have no sample, or many. */
static void count(struct sf_perf_budget *budget, uint64_t allowed_ns, uint64_t cost_ns)
{
	budget->least_ns += allowed_ns / LEAST_PART - budget->least_ns / BATCHES;
	budget->wanted_ns += (budget->n_samples - budget->n_before) * cost_ns - budget->wanted_ns / BATCHES;
	budget->n_before = budget->n_samples;
}

void sf_perf_budget_set(struct sf_perf_budget *budget, uint64_t late_ns, uint64_t allowed_ns, uint64_t walk_ns)
{
	const uint64_t part = SF_PERF_ALL * HALF_NS / (HALF_NS + late_ns);
	const uint64_t cost_ns = walk_ns > SF_PERF_WALK_COST_NS ? walk_ns : SF_PERF_WALK_COST_NS;
	uint64_t least = SF_PERF_ALL;

	count(budget, allowed_ns, cost_ns);
	if (budget->least_ns < budget->wanted_ns)
		least = (uint64_t)((unsigned __int128)SF_PERF_ALL * budget->least_ns / budget->wanted_ns);
	budget->part = part > least ? part : least;
}

static uint64_t draw(uint64_t time_ns)
{
	uint64_t state = sf_hash(time_ns, 64) | 1;

	return sf_random(&state) >> 32;
}

bool sf_perf_budget_has_room(const struct sf_perf_budget *budget, uint64_t time_ns)
{
	return sf_perf_budget_has_room_for(budget, 1, time_ns);
}

bool sf_perf_budget_is_due(uint32_t times, uint64_t time_ns)
{
	return draw(time_ns) < SF_PERF_ALL / times;
}

bool sf_perf_budget_has_room_for(const struct sf_perf_budget *budget, uint32_t times, uint64_t time_ns)
{
	return draw(time_ns) < budget->part / times;
}
