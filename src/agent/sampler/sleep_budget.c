/* SPDX-License-Identifier: Apache-2.0 */
/* Limits what samples of sleeping threads cost: sleep_budget.h. */
#include "agent/sampler/sleep_budget.h"

#include "frozen/random.h"

#define SHARE 100            /* one of so many parts of the time of all CPUs */
#define ALL (UINT64_C(1) << 16)

void sf_sleep_budget_begin(struct sf_sleep_budget *budget, unsigned n_cpus, uint64_t now_ns)
{
	*budget = (struct sf_sleep_budget){ .n_cpus = n_cpus, .random = now_ns | 1, .part = ALL, .began_ns = now_ns };
}

static uint64_t part_for(const struct sf_sleep_budget *budget, uint64_t passed_ns)
{
	const uint64_t wanted_ns = budget->n_due * budget->mean_ns, allowed_ns = passed_ns * budget->n_cpus / SHARE;

	return wanted_ns <= allowed_ns ? ALL : allowed_ns * ALL / wanted_ns;
}

void sf_sleep_budget_round(struct sf_sleep_budget *budget, uint64_t now_ns)
{
	if (budget->n_taken)
		budget->mean_ns = budget->taken_ns / budget->n_taken;
	budget->part = part_for(budget, now_ns - budget->began_ns);
	budget->began_ns = now_ns;
	budget->n_due = budget->n_taken = budget->taken_ns = 0;
}

bool sf_sleep_budget_has_room(struct sf_sleep_budget *budget, bool first)
{
	budget->n_due++;
	return first || sf_random(&budget->random) % ALL < budget->part;
}

void sf_sleep_budget_taken(struct sf_sleep_budget *budget, uint64_t cost_ns)
{
	budget->n_taken++;
	budget->taken_ns += cost_ns;
}
