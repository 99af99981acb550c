/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the samples out of the rings, in batches, and hands each one on with its share of the CPU time that the kernel
 * has counted for its thread (shares.c). So the samples of a thread add up to the kernel's count, whether a clock was
 * late, was throttled, or found no room in a ring.
 *
 * The wait between two batches lasts until a ring is half full, or for as long as the rate allows.
 *
 * When a thread ends that has inherited an event, the kernel wakes the thread that polls the event's ring, and that poll
 * goes on (perf_event_exit_event() and ring_buffer_wakeup() in the kernel's kernel/events). The wake-up takes CPU time of
 * the thread that ends. So where many threads end, the rings are not polled, but looked at now and then.
 */
#include "capture/perf/perf.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "os/clock.h"
#include "os/perf_events.h"

#define SETTLED_PERIODS 2           /* as they were asked for: of CPU time that a thread has used */
#define BATCH_NS 20000000           /* between two batches at the least, unless a ring is half full ... */
#define BATCH_NS_MAX 50000000       /* ... and at the most: a process that has ended can no longer be read */
#define BEGIN_NS 1000000000         /* of a recording: ... */
#define BATCH_NS_BEGIN 10000000     /* ... copies of sleeps that are too short are soon replaced, and holes in stacks filled */
#define BATCH_SAMPLES 10            /* in a batch, where the CPUs are busy: a batch costs some of them */
#define DRAIN_NS 1000000            /* at the least: a ring that fills at once is no reason to do nothing else */
#define LOOK_NS 2000000             /* between two looks at the rings, where more than one thread ends in this time */
#define N_KINDS 4                   /* of events that have rings of their own */

static void send_sample(struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	if (!thread || !thread->batch.n || thread->is_refused || sf_perf_deep_is(perf, thread, record) ||
	    (!thread->batch.has_first && !sf_perf_budget_has_room_for(&perf->budget, sf_perf_times(perf, thread), record->time_ns)))
		return;
	thread->batch.has_first = false;
	sf_perf_send_sample(perf, thread, record);
	perf->n_samples++;
}

/* Memory without a file has no code that could be found later. */
static void send_mapping(const struct sf_perf *perf, const struct sf_perf_record *record)
{
	const struct sf_perf_mapping *made = &record->mapping;
	const struct sf_mapping mapping = {
		.start = made->start,
		.end = made->start + made->size,
		.offset = made->offset,
		.inode = made->inode,
		.device = makedev(made->major, made->minor),
		.executable = (made->protection & PROT_EXEC) != 0,
		.readable = true,
		.path = made->path,
	};

	if (mapping.executable && sf_perf_concerns(perf, record->pid) && (made->path[0] == '/' || strcmp(made->path, "[vdso]") == 0) && strcmp(made->path, "//anon") != 0)
		sf_relay_mapping(perf->base.relay, record->pid, &mapping);
}

/* At its end a thread has its CPU, and no record says that it leaves that; perhaps none of a switch since it came into sight. */
static void end_thread(const struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_thread *thread = sf_perf_find_thread(perf, record);

	if (thread && (thread->on_cpu.since_ns || !thread->on_cpu.is_followed))
		sf_on_cpu_switch(&thread->on_cpu, record->time_ns, true);
}

/* What is said of a process whose id was another one's is left to the next look at all processes, which finds it. */
static bool is_anothers(struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_watch *watch = &perf->base.watch;

	if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_THROTTLE ||
	    !sf_watch_is_anothers(watch, record->pid, record->time_ns))
		return false;
	sf_watch_scan_soon(watch);
	return true;
}

static void handle(struct sf_perf *perf, const struct perf_event_header *header)
{
	struct sf_perf_record record;

	if (!sf_perf_record_parse(header, &record) || is_anothers(perf, &record))
		return;
	switch (record.type) {
	case PERF_RECORD_SAMPLE:
		if (perf->counting.on)
			sf_perf_counting_sample(perf, sf_perf_find_thread(perf, &record), &record);
		else
			send_sample(perf, &record);
		break;
	case PERF_RECORD_LOST:
		if (perf->counting.on)
			sf_perf_counting_lost(perf, &record);
		perf->n_lost += record.n_lost;
		perf->base.watch.knows_children = false;
		perf->base.watch.most_unsampled_ns = 0;
		break;
	case PERF_RECORD_THROTTLE:
		perf->n_throttled++;
		break;
	case PERF_RECORD_FORK:
		if (record.pid != record.parent_pid)
			sf_watch_fork(&perf->base.watch, record.pid);
		break;
	case PERF_RECORD_COMM:
		if (record.is_exec)
			sf_watch_exec(&perf->base.watch, record.pid, record.name);
		sf_watch_rename(&perf->base.watch, record.tid, record.name, record.time_ns);
		break;
	case PERF_RECORD_MMAP2:
		send_mapping(perf, &record);
		break;
	case PERF_RECORD_EXIT:
		perf->n_ends++;
		perf->end_ns = record.time_ns;
		end_thread(perf, &record);
		if (!perf->base.options.all && sf_perf_concerns(perf, record.pid))
			perf->base.watch.next_scan_ns = 0;
		else if (perf->base.options.all && record.pid == record.tid)
			sf_perf_newcomers_exit(&perf->newcomers, record.pid, record.time_ns);
		break;
	default:
		break;
	}
}

/* The ring whose next record is the oldest, among those of one kind of event after another. */
struct oldest {
	struct sf_perf_ring *ring;       /* NULL: all are read */
	enum sf_perf_kind kind;
	uint32_t index;
	uint64_t time_ns;
};

static void find_oldest(struct sf_perf_events *events, struct oldest *found)
{
	for (size_t i = 0; i < events->n_cpus; i++) {
		uint64_t time_ns;

		if (sf_perf_events_peek(events, i, &time_ns) && (!found->ring || time_ns < found->time_ns))
			*found = (struct oldest){ &events->rings[i], events->kind, (uint32_t)i, time_ns };
	}
}

static void handle_oldest(struct sf_perf *perf, const struct oldest *oldest, uint64_t now_ns)
{
	const struct perf_event_header *header = sf_perf_ring_peek(oldest->ring);
	struct sf_perf_record record;

	if (oldest->kind == SF_PERF_CLOCK || oldest->kind == SF_PERF_COUNTED)
		handle(perf, header);
	else if (oldest->kind == SF_PERF_SWITCHES && sf_perf_record_parse(header, &record))
		sf_perf_sleeps_switch(perf, oldest->index, &record, now_ns);
	else if (oldest->kind == SF_PERF_WAKINGS && sf_perf_record_parse_raw(header, &record))
		sf_perf_sleeps_waking(perf, &record);
	else if (oldest->kind == SF_PERF_SIGNALS && sf_perf_record_parse(header, &record))
		sf_perf_signals_take(&perf->signals, &record);
	sf_perf_ring_take(oldest->ring);
}

static void handle_all(struct sf_perf *perf, uint64_t now_ns)
{
	for (;;) {
		struct oldest oldest = { 0 };

		find_oldest(&perf->events, &oldest);
		find_oldest(&perf->sleeps.switches, &oldest);
		find_oldest(&perf->sleeps.wakings, &oldest);
		find_oldest(&perf->signals.events, &oldest);
		if (!oldest.ring)
			return;
		handle_oldest(perf, &oldest, now_ns);
	}
}

/* Whether a copy of its stack was cut that had all the room there is. */
static bool was_cut_when_full(const struct sf_perf *perf, struct sf_thread *thread)
{
	if (perf->counting.on)
		return atomic_exchange_explicit(&thread->needs.only_cut, 0, memory_order_relaxed) && thread->copy_was_full;
	return atomic_exchange_explicit(&thread->needs.cut_at, 0, memory_order_relaxed) >= perf->events.stack_bytes;
}

/* In finer samples a thread that goes on has a part of its samples only. */
static bool is_settled(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->run.cpu_ns - thread->first_cpu_ns >= SETTLED_PERIODS * perf->base.period_ns;
}

/*
 * Larger copies are needed then, if there are any. What a walk has found out since the samples were counted may have left
 * one for the hold.
 */
static void learn_sizes(struct sf_perf *perf)
{
	for (size_t i = 0; i < perf->due.n; i++) {
		struct sf_thread *thread = perf->due.items[i];

		thread->batch.n = 0;
		thread->batch.is_due = false;
		thread->batch.is_settled = thread->batch.is_settled || is_settled(perf, thread);
		if (atomic_load_explicit(&thread->needs.chain, memory_order_relaxed))
			perf->chain_wanted = true;
		if (was_cut_when_full(perf, thread) && perf->events.stack_bytes < SF_PERF_MAX_STACK)
			perf->stack_wanted = 2 * perf->events.stack_bytes;
	}
}

uint64_t sf_perf_batch(struct sf_perf *perf, uint64_t now_ns)
{
	const uint64_t n_before = perf->n_samples, began_ns = sf_now_ns();
	uint64_t n_bytes = sf_perf_sleeps_begin(&perf->sleeps, began_ns);

	perf->base.watch.recorded_until_ns = perf->sleeps.began_ns;
	n_bytes += sf_perf_events_begin(&perf->events, began_ns);
	n_bytes += sf_perf_events_begin(&perf->signals.events, began_ns);
	if (!n_bytes && !perf->sleeps.kept.n)
		return 0;
	sf_perf_share_out(perf, now_ns);
	handle_all(perf, now_ns);
	sf_perf_events_end(&perf->events);
	sf_perf_events_end(&perf->signals.events);
	sf_perf_sleeps_end(perf, now_ns);
	learn_sizes(perf);
	sf_perf_holes_fill(perf, now_ns);
	sf_perf_deep_hold(perf, now_ns);
	return perf->n_samples - n_before;
}

/* --- the wait for the next batch --- */

/* To add one: an item here, and N_KINDS. */
static const struct sf_perf_events *kind_of(const struct sf_perf *perf, size_t i)
{
	const struct sf_perf_events *const kinds[N_KINDS] = { &perf->events, &perf->sleeps.switches, &perf->sleeps.wakings, &perf->signals.events };

	return kinds[i];
}

static bool is_half_full(const struct sf_perf *perf)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		if (sf_perf_events_are_half_full(kind_of(perf, i)))
			return true;
	}
	return false;
}

static void poll_rings(const struct sf_perf *perf, uint64_t until_ns)
{
	int owners[N_KINDS * SF_PERF_MAX_CPUS];
	size_t n = 0;

	for (size_t i = 0; i < N_KINDS; i++) {
		const struct sf_perf_events *events = kind_of(perf, i);

		memcpy(owners + n, events->owners, events->n_cpus * sizeof(owners[0]));
		n += events->n_cpus;
	}
	sf_perf_wait(owners, n, until_ns);
}

static void look_at_rings(const struct sf_perf *perf, uint64_t until_ns)
{
	uint64_t now_ns;

	while ((now_ns = sf_now_ns()) < until_ns && !is_half_full(perf))
		sf_sleep_until(now_ns + LOOK_NS < until_ns ? now_ns + LOOK_NS : until_ns);
}

/* Since the last wait. A thread that is to be displaced is caught by a signal, which ends a poll. */
static bool many_end(struct sf_perf *perf, uint64_t now_ns)
{
	const uint64_t n = perf->n_ends - perf->last_wait.n_ends, ns = now_ns - perf->last_wait.began_ns;

	perf->last_wait.n_ends = perf->n_ends;
	perf->last_wait.began_ns = now_ns;
	return n * LOOK_NS > ns && !sf_perf_n_to_displace(perf);
}

/* Whether the stacks of sleeping threads are hardly known yet. */
static bool is_beginning(const struct sf_perf *perf)
{
	return perf->sleeps.on && perf->base.sampled_ns < BEGIN_NS;
}

/* The lower the rate, the longer a batch. Threads are held at its end: jitter keeps holds out of step with what a thread does. */
static uint64_t batch_ns(struct sf_perf *perf)
{
	const uint64_t wanted_ns = perf->events.period_ns * BATCH_SAMPLES / (perf->events.n_cpus ? perf->events.n_cpus : 1);
	const uint64_t most_ns = wanted_ns < BATCH_NS_MAX ? wanted_ns : BATCH_NS_MAX;

	if (perf->base.options.prompt)
		return DRAIN_NS;
	if (sf_perf_n_to_displace(perf))
		return sf_outside_jitter(&perf->base, perf->base.period_ns);
	if (is_beginning(perf))
		return sf_outside_jitter(&perf->base, BATCH_NS_BEGIN);
	return sf_outside_jitter(&perf->base, most_ns > BATCH_NS ? most_ns : BATCH_NS);
}

void sf_perf_wait_for_batch(struct sf_perf *perf, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t until_ns = now_ns + batch_ns(perf);

	if (until_ns > end_ns)
		until_ns = end_ns;
	sf_relay_rest(perf->base.relay, until_ns);
	sf_alarm_set(0); /* of a hold */
	if (!perf->base.n_requested)
		sf_hold_let_stop();
	sf_perf_aim(perf, until_ns);
	if (many_end(perf, now_ns))
		look_at_rings(perf, until_ns);
	else
		poll_rings(perf, until_ns);
	sf_perf_catch_displaced(perf);
	if (sf_now_ns() < now_ns + DRAIN_NS)
		sf_sleep_until(now_ns + DRAIN_NS < until_ns ? now_ns + DRAIN_NS : until_ns);
}
