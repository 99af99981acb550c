/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API call guard: marks the calling thread while it is inside a call of stillframe's API, so
 * that the call is not sampled. The sampler reads the marks without a lock.
 */
#include "agent/visit.h"

#include <stddef.h>

#include "agent/seats.h"
#include "frozen/raw.h"

void sf_visit_begin(void)
{
	struct sf_seat *seat = sf_agent_own_seat(NULL);

	if (seat)
		atomic_store(&seat->visit_since_ns, sf_raw_now_ns());
}

void sf_visit_end(void)
{
	struct sf_seat *seat = sf_agent_find_own_seat();
	uint64_t since_ns = seat ? atomic_exchange(&seat->visit_since_ns, 0) : 0;

	if (since_ns)
		atomic_fetch_add(&seat->visited_ns, sf_raw_now_ns() - since_ns);
}

uint64_t sf_visit_since(const struct sf_seat *seat)
{
	return atomic_load(&seat->visit_since_ns);
}

uint64_t sf_visit_take(struct sf_seat *seat)
{
	return atomic_exchange(&seat->visited_ns, 0);
}

void sf_visit_restart(struct sf_seat *seat, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load(&seat->visit_since_ns);

	if (since_ns)
		atomic_compare_exchange_strong(&seat->visit_since_ns, &since_ns, now_ns);
	atomic_store(&seat->visited_ns, 0);
}
