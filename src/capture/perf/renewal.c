/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens events anew while they sample, in the place of those that are open: with longer copies of stacks, the kernel's chain, a
 * shorter period or another count of an event, and on CPUs that have come online.
 */
#include "capture/perf/perf.h"

#include <string.h>

#include "os/process.h"

#define CPUS_NS 100000000 /* between two looks at which CPUs are online: to take one offline and back takes as long */

bool sf_perf_list_processes(const struct sf_perf *perf, struct sf_ids *ret)
{
	const struct sf_watch *watch = &perf->base.watch;

	for (size_t i = 0; i < watch->processes.n; i++) {
		if (!sf_vec_push(&ret->ids, watch->processes.items[i].pid))
			return false;
	}
	return !perf->base.options.children || sf_process_descendants(ret);
}

static void resize(struct sf_perf *perf, struct sf_perf_events *events, uint32_t *wanted)
{
	struct sf_error err = { 0 };
	struct sf_ids ids = { 0 };

	if (*wanted && sf_perf_list_processes(perf, &ids))
		sf_perf_events_resize(events, *wanted, ids.ids.items, ids.ids.n, &err);
	*wanted = 0;
	sf_vec_deinit(&ids.ids);
}

/* To the samples of sleeps, too: threads sleep on both stacks. */
static void add_chain(struct sf_perf *perf)
{
	struct sf_error err = { 0 };
	struct sf_ids ids = { 0 };

	if (perf->chain_wanted && !perf->events.user_chain && sf_perf_list_processes(perf, &ids) &&
	    sf_perf_events_add_chain(&perf->events, ids.ids.items, ids.ids.n, &err) && perf->sleeps.on)
		sf_perf_events_add_chain(&perf->sleeps.switches, ids.ids.items, ids.ids.n, &err);
	perf->chain_wanted = false;
	sf_vec_deinit(&ids.ids);
}

static void refine(struct sf_perf *perf)
{
	struct sf_error err = { 0 };
	struct sf_ids ids = { 0 };

	if (perf->period_wanted && sf_perf_list_processes(perf, &ids))
		sf_perf_events_refine(&perf->events, perf->period_wanted, ids.ids.items, ids.ids.n, &err);
	perf->period_wanted = 0;
	sf_vec_deinit(&ids.ids);
}

/* Where there are too many samples of an event, or few. */
static void set_pace(struct sf_perf *perf, uint64_t now_ns)
{
	const uint64_t wanted = sf_perf_counting_pace(perf, now_ns);
	struct sf_error err = { 0 };
	struct sf_ids ids = { 0 };

	if (wanted != perf->events.each && sf_perf_list_processes(perf, &ids))
		sf_perf_events_set_each(&perf->events, wanted, ids.ids.items, ids.ids.n, &err);
	sf_vec_deinit(&ids.ids);
}

/* --- CPUs that come online --- */

static bool has_cpu(const struct sf_perf_online *online, int cpu)
{
	for (size_t i = 0; i < online->n; i++) {
		if (online->cpus[i] == cpu)
			return true;
	}
	return false;
}

bool sf_perf_online_has_more(struct sf_perf_online *online, uint64_t now_ns)
{
	struct sf_perf_online now = { .next_ns = now_ns + CPUS_NS };
	bool has_more = false;

	if (now_ns < online->next_ns)
		return false;
	now.n = sf_perf_cpus(now.cpus, SF_PERF_MAX_CPUS);
	for (size_t i = 0; i < now.n; i++)
		has_more |= !has_cpu(online, now.cpus[i]);
	has_more &= online->n != 0; /* the first look has nothing to compare */
	*online = now;
	return has_more;
}

/* Where the rings of a CPU that was not there at the start cannot be had, its threads have no samples while they run on it. */
static void follow_cpus(struct sf_perf *perf)
{
	struct sf_perf_events *const all[] = { &perf->events, &perf->sleeps.switches, &perf->sleeps.wakings, &perf->signals.events };
	struct sf_ids ids = { 0 };

	if (sf_perf_list_processes(perf, &ids)) {
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			sf_perf_events_follow_cpus(all[i], ids.ids.items, ids.ids.n, &perf->no_cpu);
	}
	sf_vec_deinit(&ids.ids);
}

void sf_perf_renew(struct sf_perf *perf, uint64_t now_ns)
{
	resize(perf, &perf->events, &perf->stack_wanted);
	resize(perf, &perf->sleeps.switches, &perf->sleeps.stack_wanted);
	add_chain(perf);
	sf_perf_widen_if_short(perf, now_ns);
	refine(perf);
	set_pace(perf, now_ns);
	if (sf_perf_online_has_more(&perf->online, now_ns))
		follow_cpus(perf);
}
