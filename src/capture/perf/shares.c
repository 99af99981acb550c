/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over a batch (batch.c): meets new processes and threads, counts each thread's samples, and finds for
 * how much CPU time they are to stand.
 */
#include "capture/perf/perf.h"

#include <string.h>

#include "frozen/signal/ticks.h"
#include "os/clock.h"
#include "os/process.h"

#define MAX_FIRSTS 32          /* samples of a batch that are walked beyond the budget: each the first one of its thread */

struct sf_thread *sf_perf_find_thread(const struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_thread *thread = sf_watch_find(&perf->base.watch, record->tid);

	if (!thread || thread->task.pid != record->pid || sf_watch_is_anothers(&perf->base.watch, record->pid, record->time_ns))
		return NULL;
	return thread;
}

/* Of a process that may have ended, as far as it is known. */
static void name_of(const struct sf_perf *perf, int32_t pid, char name[SF_TASK_NAME])
{
	const struct sf_perf_newcomer *newcomer = sf_perf_newcomers_find(&perf->newcomers, pid);

	if (newcomer)
		memcpy(name, newcomer->name, SF_TASK_NAME);
	else if (!sf_task_name(pid, pid, name))
		sf_watch_process_name(&perf->base.watch, pid, name);
}

/* An ancestor that ran a program since its child's record was read has another name than it had then. */
static void name_as_origin(const struct sf_perf *perf, int32_t origin, struct sf_perf_newcomer *newcomer)
{
	const struct sf_perf_newcomer *from = sf_perf_newcomers_find(&perf->newcomers, origin);

	if (from && from->name[0])
		memcpy(newcomer->name, from->name, sizeof(newcomer->name));
	else if (!newcomer->name[0] || newcomer->exec_ns)
		name_of(perf, origin, newcomer->name);
}

/* A thread that began since the batch was wanted, for which stillframe may have waited, has not slept until then. */
static uint64_t known_since(const struct sf_perf_record *record, uint64_t now_ns)
{
	return record->time_ns > now_ns ? record->time_ns : now_ns;
}

/*
 * All events are of the target's threads: what is not known is new. A thread whose id another one had is left to the next look
 * at all threads.
 */
static struct sf_thread *meet(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_watch *watch = &perf->base.watch;
	struct sf_perf_newcomer newcomer;
	struct sf_thread *thread;
	int32_t origin;

	if (sf_watch_find(watch, record->tid) || sf_watch_is_anothers(watch, record->pid, record->time_ns)) {
		sf_watch_scan_soon(watch);
		return NULL;
	}
	sf_perf_newcomers_take(&perf->newcomers, record->pid, &newcomer);
	origin = newcomer.exec_ns && newcomer.first_exec_ns <= record->time_ns ? 0 : sf_perf_newcomers_origin(&perf->newcomers, &newcomer);
	if (origin)
		name_as_origin(perf, origin, &newcomer);
	sf_watch_add_process(watch, record->pid, newcomer.parent ? newcomer.parent : sf_process_parent(record->pid),
			      newcomer.name);
	if (origin)
		sf_watch_originates(watch, record->pid, origin);
	thread = sf_watch_add_thread(watch, record->pid, record->tid, known_since(record, now_ns));
	if (thread)
		thread->exec_ns = newcomer.exec_ns;
	return thread;
}

struct sf_thread *sf_perf_thread_of(struct sf_perf *perf, const struct sf_perf_record *record, bool meets, uint64_t now_ns)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	return thread || !meets ? thread : meet(perf, record, now_ns);
}

/*
 * Where threads come into sight by their samples, one without a sample that is walked costs nothing. A sample that is
 * walked stands for those that are not (begin_account). With a filter only those of its processes count, and of an
 * event all samples count: so each thread is met.
 */
static bool is_passed_over_unmet(struct sf_perf *perf, const struct sf_perf_record *record)
{
	if (!sf_watch_is_sampled(&perf->base.watch) || perf->base.options.filter || perf->counting.on ||
	    sf_perf_budget_has_room(&perf->budget, record->time_ns))
		return false;
	perf->budget.n_samples++;
	perf->budget.n_over++;
	return true;
}

/*
 * Whether the first sample of a thread is walked though the budget has no room for it: CPU time of a thread that ends
 * without a sample is a loss.
 */
static bool is_walked_first(struct sf_perf *perf, struct sf_thread *thread)
{
	if (thread->ran || thread->batch.n || perf->n_firsts >= MAX_FIRSTS || sf_watch_knows_by_samples(&perf->base.watch, thread))
		return false;
	perf->n_firsts++;
	thread->batch.has_first = true;
	return true;
}

/*
 * For which samples stand where threads come into sight by them: their periods, and those of the samples that are
 * passed over.
 */
static uint64_t share_ns(const struct sf_perf *perf, uint64_t periods_ns)
{
	return (uint64_t)((unsigned __int128)periods_ns * SF_PERF_ALL / perf->budget.part);
}

/*
 * A thread that has ended is on its CPU for a moment more, when the kernel has taken its ids away: they are -1
 * (perf_event_pid_type() in the kernel's kernel/events/core.c). Nothing says whose time that is. Where all of the
 * machine is not watched by samples, it is in an account.
 */
static void lose_sample(struct sf_perf *perf, const struct sf_perf_record *record)
{
	const uint64_t ns = share_ns(perf, record->period_ns);
	const struct sf_weight weight = { .cpu_ns = ns, .wall_ns = ns, .ticks = sf_ticks(ns, perf->events.period_ns) };

	if (sf_watch_is_sampled(&perf->base.watch) && !perf->base.options.filter && !perf->counting.on &&
	    sf_perf_budget_has_room(&perf->budget, record->time_ns))
		sf_relay_loss(perf->base.relay, NULL, SF_LOSS_GONE, &weight);
}

/* To the threads that are measured for this batch. False: no memory. */
static bool add_due(struct sf_perf *perf, struct sf_thread *thread)
{
	thread->batch.is_due = thread->batch.is_due || sf_vec_push(&perf->due, thread);
	return thread->batch.is_due;
}

uint32_t sf_perf_times(const struct sf_perf *perf, const struct sf_thread *thread)
{
	const uint64_t period_ns = perf->events.period_ns, asked_ns = perf->base.period_ns;

	return thread->batch.is_settled && period_ns && period_ns < asked_ns ? (uint32_t)(asked_ns / period_ns) : 1;
}

/* Whether it is walked; also whether there is room for it, if it is one of those that are due. */
static bool is_walked(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	const uint32_t times = sf_perf_times(perf, thread);

	if (sf_perf_budget_has_room_for(&perf->budget, times, record->time_ns) || is_walked_first(perf, thread)) {
		perf->budget.n_samples++;
		return true;
	}
	if (sf_perf_budget_is_due(times, record->time_ns)) {
		perf->budget.n_samples++;
		perf->budget.n_over++;
	}
	return false;
}

static void count_sample(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	if (!record->pid) /* the idle task, where an event of the kernel is sampled */
		return;
	if (record->pid < 0) {
		lose_sample(perf, record);
		return;
	}
	if (!thread && (!sf_perf_concerns(perf, record->pid) || is_passed_over_unmet(perf, record)))
		return;
	if (!thread)
		thread = meet(perf, record, now_ns);
	if (!thread || !sf_thread_is_sampled(thread))
		return;
	if (sf_perf_deep_is(perf, thread, record)) {
		sf_perf_deep_want(perf, thread);
		add_due(perf, thread);
		return;
	}
	if (!is_walked(perf, thread, record)) {
		thread->batch.passed_ns += record->period_ns;
	} else if (add_due(perf, thread)) {
		thread->batch.n++;
		thread->batch.period_ns += record->period_ns;
	}
}

static void note_newcomers_exec(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	(void)now_ns;
	if (record->is_exec && !sf_perf_find_thread(perf, record))
		sf_perf_newcomers_exec(&perf->newcomers, record->pid, record->name, record->time_ns);
}

/*
 * In the first pass, so that it is known before the exec of another thread that goes on under this one's id. That one's exit may be
 * in the same batch, later.
 */
static void note_exit(struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	if (thread && (!thread->exited_ns || record->time_ns < thread->exited_ns))
		thread->exited_ns = record->time_ns;
	if (record->pid == record->tid)
		sf_watch_first_exits(&perf->base.watch, record->pid, record->time_ns);
}

static void note_exec(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	if (!thread && !sf_watch_is_sampled(&perf->base.watch) && sf_perf_concerns(perf, record->pid))
		thread = meet(perf, record, now_ns);
	if (!thread)
		return;
	thread->exec_ns = record->time_ns;
	sf_watch_take_over(&perf->base.watch, record->pid, record->time_ns);
}

static void count_record(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	if (record->type == PERF_RECORD_SAMPLE)
		count_sample(perf, record, now_ns);
	else if (record->is_exec)
		note_exec(perf, record, now_ns);
}

/* A child has its parent's name until it runs another program. The parent may have a sample already, and have ended. */
static void note_fork(struct sf_perf *perf, const struct sf_perf_record *record)
{
	char name[SF_TASK_NAME] = "";

	name_of(perf, record->parent_pid, name);
	sf_perf_newcomers_fork(&perf->newcomers, record->pid, record->parent_pid, name, record->time_ns);
}

static void meet_child(struct sf_perf *perf, const struct sf_perf_record *record)
{
	if (record->pid == record->parent_pid)
		return;
	sf_watch_id_begins(&perf->base.watch, record->pid, record->time_ns);
	if (sf_watch_is_sampled(&perf->base.watch))
		note_fork(perf, record);
	else if (sf_watch_is_anothers(&perf->base.watch, record->pid, record->time_ns))
		return; /* the next look at all processes finds it */
	else if (sf_watch_has_process(&perf->base.watch, record->pid))
		sf_watch_process_begins(&perf->base.watch, record->pid);
	else if (perf->events.children && sf_perf_concerns(perf, record->parent_pid))
		sf_watch_add_process(&perf->base.watch, record->pid, record->parent_pid, "");
}

/* A thread's CPU time by the kernel, when the thread ends: one record for each CPU. */
static void count_end(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	(void)now_ns;
	if (thread)
		thread->ended_cpu_ns += record->cpu_ns;
}

static void begin_record(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns)
{
	(void)now_ns;
	if (record->type == PERF_RECORD_FORK)
		meet_child(perf, record);
	else
		note_exit(perf, record);
}

typedef void record_fn(struct sf_perf *perf, const struct sf_perf_record *record, uint64_t now_ns);

/* `types`: a bit for each type of record. */
static void for_each(struct sf_perf *perf, uint32_t types, record_fn *fn, uint64_t now_ns)
{
	const struct perf_event_header *header;
	struct sf_perf_record record;
	uint64_t time_ns;

	for (size_t i = 0; i < perf->events.n_cpus; i++) {
		struct sf_perf_ring *ring = &perf->events.rings[i];

		for (; (header = sf_perf_events_peek(&perf->events, i, &time_ns)); sf_perf_ring_take(ring)) {
			if (header->type >= 32 || !(types >> header->type & 1) || !sf_perf_record_parse(header, &record))
				continue;
			record.period_ns = perf->events.periods_ns[i];
			fn(perf, &record, now_ns);
		}
		sf_perf_ring_rewind(ring);
	}
}

/*
 * Of all that runs, a child concerns only if its parent does, and the record of the parent's start may be in the ring
 * of another CPU.
 */
static void meet_children(struct sf_perf *perf, uint64_t now_ns)
{
	const struct sf_watch *watch = &perf->base.watch;
	size_t n_before;

	do {
		n_before = watch->processes.n;
		for_each(perf, 1u << PERF_RECORD_FORK | 1u << PERF_RECORD_EXIT, begin_record, now_ns);
	} while (sf_perf_is_wide(perf) && watch->processes.n > n_before);
}

static void count(struct sf_perf *perf, uint64_t now_ns)
{
	perf->due.n = perf->n_firsts = 0;
	meet_children(perf, now_ns); /* first: a child may have run on another CPU already ... */
	if (sf_watch_is_sampled(&perf->base.watch)) /* ... and so may its parent's exec have been */
		for_each(perf, 1u << PERF_RECORD_COMM, note_newcomers_exec, now_ns);
	for_each(perf, 1u << PERF_RECORD_COMM | 1u << PERF_RECORD_SAMPLE, count_record, now_ns);
	for_each(perf, 1u << PERF_RECORD_READ, count_end, now_ns);
}

/* Of those of its samples that are walked, each stands for a period, and for those that are passed over. */
static void begin_account(const struct sf_perf *perf, struct sf_thread *thread)
{
	bool ran;

	thread->begun = true;
	sf_thread_measure(thread, sf_now_ns(), &ran);
	thread->account.cpu_ns = share_ns(perf, thread->batch.period_ns) + thread->before_ns;
	thread->first_cpu_ns = thread->run.cpu_ns - thread->account.cpu_ns;
	thread->account.awake_ns = (int64_t)thread->account.cpu_ns;
	thread->account.asleep_ns = 0;
}

/*
 * A thread that has ended has no count in /proc any more. Its last records have its CPU time. Where those are missing each of
 * its samples stands for a period, and the kernel's count is taken to be that. Where the records of its switches say how
 * long it ran, those of this batch are not read yet: its samples stand for a period less, and the end adds the rest.
 */
static void measure_ended(const struct sf_perf *perf, struct sf_thread *thread)
{
	const uint64_t periods_ns = thread->batch.period_ns + thread->batch.passed_ns;
	const struct sf_switches *switches = &perf->base.watch.switches;
	const bool is_recorded = sf_on_cpu_is_complete(&thread->on_cpu, switches);
	const uint64_t less_ns = is_recorded ? perf->events.period_ns : 0, least_ns = periods_ns > less_ns ? periods_ns - less_ns : 0;

	if ((is_recorded || !sf_thread_settle_end(thread, switches)) && thread->account.cpu_ns < least_ns)
		sf_thread_add_cpu(thread, least_ns - thread->account.cpu_ns);
}

static void measure(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	sf_watch_extend_sleep(&perf->base.watch, thread, now_ns);
	if (sf_watch_knows_by_samples(&perf->base.watch, thread) && !thread->begun) {
		begin_account(perf, thread);
		return;
	}
	if (!sf_thread_measure(thread, sf_now_ns(), &ran))
		measure_ended(perf, thread);
	sf_watch_forget_elsewhere(&perf->base.watch, thread, thread->batch.period_ns + thread->batch.passed_ns);
}

void sf_perf_share_out(struct sf_perf *perf, uint64_t now_ns)
{
	count(perf, now_ns);
	for (size_t i = 0; i < perf->due.n && !perf->counting.on; i++) {
		measure(perf, perf->due.items[i], now_ns);
		sf_perf_kernel_time_split(perf, perf->due.items[i]);
		perf->due.items[i]->batch.period_ns = perf->due.items[i]->batch.passed_ns = 0;
	}
}
