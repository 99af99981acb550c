/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the threads that the sampler requests at one of its ticks, for threads without a CPU
 * clock of their own. Only the sampler's thread calls this; it takes no lock and allocates
 * nothing.
 */
#include "agent/sampler/select_threads.h"
#include "agent/clocks/clocks.h"

#include "agent/libc/own_proc.h"
#include "frozen/random.h"

static bool can_be_requested(const struct sf_agent_thread *thread)
{
	const uint32_t passed_over = SF_ENTRY_LEAVING | SF_ENTRY_DEAF | SF_ENTRY_IN_ROUNDS;

	return thread->watched && !thread->replaced && !atomic_load(&thread->entry->request) &&
	       !(atomic_load(&thread->entry->flags) & passed_over);
}

/*
 * Whether the thread is due for a sample: it ran since the last tick, and a random draw selects it in
 * proportion to its CPU time since its last sample. This gives one sample for each period of CPU
 * time, also if many threads run a little between two ticks.
 */
static bool is_due(struct sf_agent_thread *thread, uint64_t period_ns, uint64_t *random)
{
	uint64_t cpu_ns;

	if (!can_be_requested(thread) || !sf_agent_thread_cpu(thread->tid, &cpu_ns) ||
	    cpu_ns == thread->ticked_cpu_ns)
		return false;
	thread->ticked_cpu_ns = cpu_ns;
	return cpu_ns > atomic_load(&thread->entry->accounted_ns) + sf_random(random) % period_ns;
}

/*
 * Vitter's algorithm R. The CPU time of a thread that is not selected stays on its account. So the
 * weights of samples are right without a factor.
 */
uint32_t sf_select_threads(struct sf_agent *agent, uint64_t period_ns, uint64_t *random,
		   uint32_t chosen_ret[SF_MAX_SELECTED])
{
	struct sf_agent_threads *threads = agent->threads;
	const uint32_t wanted = agent->options.per_tick;
	const uint32_t max = wanted && wanted < SF_MAX_SELECTED ? wanted : SF_MAX_SELECTED;
	uint32_t n_due = 0, place;

	for (uint32_t i = 0; i < threads->n; i++) {
		if (!is_due(&threads->all[i], period_ns, random))
			continue;
		place = n_due < max ? n_due : (uint32_t)(sf_random(random) % (n_due + 1));
		if (place < max)
			chosen_ret[place] = i;
		n_due++;
	}
	return n_due < max ? n_due : max;
}

bool sf_is_awake(const struct sf_agent_thread *thread)
{
	struct sf_own_place place;

	return !sf_own_place(thread->tid, &place) || place.awake;
}
