/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the events that record sleeps, enlarges their copies, and pauses them where these would cost too much. */
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"
#include "capture/perf/perf.h"
#include "capture/perf/sleep_sample.h"
#include "capture/perf/stacks.h"
#include "os/clock.h"
#include "os/tracepoints.h"

#define SWITCH_COST_NS 8000     /* of a thread whose switch is recorded, and of reading the record ... */
#define BYTES_PER_NS 6          /* ... and of the copy of its stack */
#define WALK_PART 2             /* of the limit, one part of so many at the most ... */
#define WALK_PART_LEAST 16      /* ... and at the least: samples of CPU time come first */
#define SWITCH_PERIOD_NS 500000 /* of a CPU, for the size of the first copies: 8 KiB in a ring of 8 MiB */
#define WAKING_COST_NS 500      /* of a record of who wakes, for the waking thread and for reading it */
#define WAKINGS_PART 2          /* of the limit, one part of so many */
#define DEBT_NS 100000000       /* a burst that takes so much longer than the limit allows is let through */

static bool find_wakings(struct sf_perf_sleeps *sleeps, struct sf_tracepoint tracepoints[2], struct sf_error *err)
{
	static const char *const names[2] = { "sched_waking", "sched_wakeup" };

	if (!sf_tracepoints_name_threads(err))
		return false;
	for (int i = 0; i < 2; i++) {
		if (!sf_tracepoint_find("sched", names[i], &tracepoints[i], err))
			return false;
		sleeps->woken_offset = sf_tracepoint_field(&tracepoints[i], "pid", sizeof(int32_t));
		if (sleeps->woken_offset < 0)
			return sf_fail(err, SF_E_UNSUPPORTED, "this kernel's %s names no thread", names[i]);
	}
	return true;
}

/* The records of both tracepoints have the same fields. */
static bool open_wakings(struct sf_perf_sleeps *sleeps, struct sf_error *err)
{
	struct sf_tracepoint *tracepoints = calloc(2, sizeof(*tracepoints));
	struct sf_perf_events *events = &sleeps->wakings;
	bool fine = tracepoints ? find_wakings(sleeps, tracepoints, err) : sf_fail_memory(err);

	*events = (struct sf_perf_events){ .kind = SF_PERF_WAKINGS, .all = true, .kernel = true };
	fine = fine && sf_perf_events_open(events, 0, err);
	if (fine) {
		events->tracepoint = sleeps->waking = (uint16_t)tracepoints[0].number;
		events->second_tracepoint = tracepoints[1].number;
		fine = sf_perf_events_attach(events, NULL, 0, err);
	}
	if (!fine)
		sf_perf_events_close(events);
	free(tracepoints);
	return fine;
}

void sf_perf_sleeps_open(struct sf_perf *perf)
{
	const char *given = sf_setting(perf->base.options.settings, "offcpu-min");
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_error err = { 0 };

	sleeps->min_ns = SF_PERF_SLEEP_MIN_NS;
	if (given)
		sf_parse_time(given, &sleeps->min_ns, &err);
	if (!perf->base.blocked_period_ns || sf_watch_is_sampled(&perf->base.watch))
		return;
	if (!perf->events.kernel)
		return;
	sleeps->switches = (struct sf_perf_events){
		.kind = SF_PERF_SWITCHES, .all = perf->events.all, .cgroup = perf->events.cgroup, .children = perf->events.children,
		.kernel = true, .enabled = perf->events.enabled,
	};
	sleeps->on = sf_perf_events_open(&sleeps->switches, SWITCH_PERIOD_NS, &err);
	if (!sleeps->on)
		snprintf(sleeps->reason, sizeof(sleeps->reason), "%.150s", err.text);
}

/*
 * Threads go deeper than where they sleep now: where a stack is too deep for the copies, these have room for twice as
 * much. A record takes the room of a whole copy in the ring, so longer copies than are needed lose records sooner.
 */
static void make_room(struct sf_perf_events *switches, const int32_t *pids, size_t n)
{
	const uint32_t depth = sf_perf_depth(pids, n);

	if (depth > switches->stack_bytes)
		sf_perf_events_make_room(switches, 2 * depth);
}

void sf_perf_sleeps_attach(struct sf_perf *perf, const int32_t *pids, size_t n)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_error err = { 0 };

	if (!sleeps->on)
		return;
	if (perf->base.options.child) {
		sleeps->later_bytes = sleeps->switches.stack_bytes;
		sf_perf_events_make_room(&sleeps->switches, SF_PERF_STACK_LAUNCHED);
	} else {
		make_room(&sleeps->switches, pids, n);
	}
	sleeps->attached_ns = sf_now_ns();
	if (!sf_perf_events_attach(&sleeps->switches, pids, n, &err)) {
		snprintf(sleeps->reason, sizeof(sleeps->reason), "%.150s", err.text);
		sf_perf_events_close(&sleeps->switches);
		sleeps->on = false;
		return;
	}
	sleeps->has_wakings = open_wakings(sleeps, &err);
	if (!sleeps->has_wakings)
		snprintf(sleeps->reason, sizeof(sleeps->reason), "%.150s", err.text);
	if (perf->events.enabled)
		sf_perf_sleeps_enable(perf);
}

void sf_perf_sleeps_enable(struct sf_perf *perf)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;

	if (sleeps->has_wakings && !sleeps->wakings.enabled)
		sf_perf_events_enable(&sleeps->wakings);
	if (sleeps->on && !sleeps->switches.enabled)
		sf_perf_events_enable(&sleeps->switches);
	perf->base.watch.switches = (struct sf_switches){ .are_recorded = sleeps->on, .from_ns = sf_now_ns() };
}

void sf_perf_sleeps_close(struct sf_perf_sleeps *sleeps)
{
	sf_perf_events_close(&sleeps->switches);
	sf_perf_events_close(&sleeps->wakings);
	sf_perf_waits_deinit(&sleeps->waits);
	sf_vec_deinit(&sleeps->noted);
	sf_vec_deinit(&sleeps->kept);
}

void sf_perf_sleeps_forget_thread(struct sf_thread *thread)
{
	sf_perf_sleep_forget(thread);
	thread->sleeps.are_recorded = false;
	sf_on_cpu_forget(&thread->on_cpu);
	thread->look.state = SF_STATE_RUNNING;
}

void sf_perf_sleeps_forget(struct sf_perf *perf)
{
	for (size_t i = 0; i < perf->base.watch.threads.n; i++)
		sf_perf_sleeps_forget_thread(perf->base.watch.threads.items[i]);
}

static void pause_events(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;

	sf_perf_events_disable(&sleeps->switches);
	if (sleeps->has_wakings)
		sf_perf_events_disable(&sleeps->wakings);
	sf_perf_sleeps_forget(perf);
	perf->base.watch.switches.from_ns = UINT64_MAX;
	sleeps->paused_until_ns = now_ns + (uint64_t)sleeps->debt_ns;
	sleeps->paused_ns += (uint64_t)sleeps->debt_ns;
	sleeps->debt_ns = 0;
	sleeps->n_paused++;
}

/*
 * The part of the limit that walks of sleeps may take. Where samples of CPU time are passed over, it shrinks as their part does,
 * but faster.
 */
static uint64_t share_of_walks(const struct sf_perf_budget *budget, uint64_t allowed_ns)
{
	const uint64_t half = SF_PERF_ALL / 2, part = budget->part > half ? 2 * (budget->part - half) : 0;
	const uint64_t share_ns = (uint64_t)((unsigned __int128)(allowed_ns / WALK_PART) * part / SF_PERF_ALL);

	return share_ns > allowed_ns / WALK_PART_LEAST ? share_ns : allowed_ns / WALK_PART_LEAST;
}

/* Which sleeps have samples until the limit is looked at again, if there will be as many as since it was. */
static void set_part(struct sf_perf_sleeps *sleeps, uint64_t share_ns)
{
	uint64_t room;

	sleeps->credit_ns += (int64_t)share_ns - (int64_t)(sleeps->n_sent * SF_PERF_WALK_COST_NS);
	if (sleeps->credit_ns > SF_PERF_WALK_CREDIT_NS)
		sleeps->credit_ns = SF_PERF_WALK_CREDIT_NS;
	if (sleeps->credit_ns < -SF_PERF_WALK_CREDIT_NS)
		sleeps->credit_ns = -SF_PERF_WALK_CREDIT_NS;
	room = sleeps->credit_ns > 0 ? (uint64_t)sleeps->credit_ns / SF_PERF_WALK_COST_NS : 0;
	sleeps->all_from_ns = room >= sleeps->n_wanted ? 0 : sleeps->wanted_ns / (room ? room : 1);
}

/* A scan may read further batches: what is counted begins anew here, and not with a batch. */
static void begin_counts(struct sf_perf_sleeps *sleeps)
{
	sleeps->n_wanted_ever += sleeps->n_wanted;
	sleeps->n_sent_ever += sleeps->n_sent;
	sleeps->n_switches = sleeps->n_copied = sleeps->n_wakings = sleeps->n_sent = sleeps->n_wanted = sleeps->wanted_ns = 0;
}

static void give_up_wakings(struct sf_perf_sleeps *sleeps)
{
	sf_perf_events_disable(&sleeps->wakings);
	sleeps->has_wakings = false;
	sleeps->gave_up_wakings = true;
}

/* Time in which so much work takes one part of the limit. */
static int64_t time_for(const struct sf_overhead_limit *limit, uint64_t work_ns, unsigned part)
{
	return (int64_t)(work_ns * part * 100 / (limit->share * limit->n_cpus));
}

static void count_costs(struct sf_perf_sleeps *sleeps, const struct sf_overhead_limit *limit, uint64_t passed_ns)
{
	const uint64_t switches_ns = sleeps->n_switches * SWITCH_COST_NS + sleeps->n_copied / BYTES_PER_NS;

	sleeps->debt_ns += time_for(limit, switches_ns, 1) - (int64_t)passed_ns;
	sleeps->wakings_debt_ns += time_for(limit, sleeps->n_wakings * WAKING_COST_NS, WAKINGS_PART) - (int64_t)passed_ns;
	if (sleeps->debt_ns < -DEBT_NS)
		sleeps->debt_ns = -DEBT_NS;
	if (sleeps->wakings_debt_ns < -DEBT_NS)
		sleeps->wakings_debt_ns = -DEBT_NS;
}

/*
 * From now on the records say how long threads run (capture/ptrace/account.h). The next sample of a sleep stands for the
 * time that its thread has slept without records and without a look.
 */
static void count_all(struct sf_perf *perf, uint64_t now_ns)
{
	for (size_t i = 0; i < perf->base.watch.threads.n; i++) {
		struct sf_thread *thread = perf->base.watch.threads.items[i];
		bool ran;

		if (thread->is_refused || !sf_thread_measure(thread, now_ns, &ran) || !ran || thread->account.asleep_ns <= 0)
			continue;
		thread->sleeps.passed_ns += (uint64_t)thread->account.asleep_ns;
		thread->account.asleep_ns = 0;
	}
}

void sf_perf_sleeps_limit(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	const struct sf_overhead_limit *limit = &perf->base.limit;

	if (!sleeps->on || now_ns < sleeps->paused_until_ns)
		return;
	if (sleeps->paused_until_ns) {
		sleeps->paused_until_ns = 0;
		sf_perf_sleeps_enable(perf);
		count_all(perf, now_ns);
	} else if (sleeps->paid_ns) {
		count_costs(sleeps, limit, now_ns - sleeps->paid_ns);
		set_part(sleeps, share_of_walks(&perf->budget, sf_overhead_limit_allows(limit, now_ns - sleeps->paid_ns)));
	}
	sleeps->paid_ns = now_ns;
	begin_counts(sleeps);
	if (sleeps->has_wakings && sleeps->wakings_debt_ns > DEBT_NS)
		give_up_wakings(sleeps);
	if (sleeps->debt_ns > DEBT_NS)
		pause_events(perf, now_ns);
}
