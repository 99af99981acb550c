/* SPDX-License-Identifier: Apache-2.0 */
/* Makes samples of the kernel's records of switches and wakings. */
#include "capture/perf/sleeps.h"

#include <stdlib.h>
#include <string.h>

#include "capture/perf/perf.h"
#include "os/clock.h"

#define MAX_KEPT_BYTES ((uint64_t)64 << 20) /* of records of sleeps that are too short as yet: what is more has no sample */
#define EXTEND_NS 500000000   /* the time of a sleep that goes on is added so often */
#define MAX_OVER_NS 100000000 /* that were passed over: the next sample stands for them, whichever it is */
#define UNTOLD_NS 5000000     /* by which sleeps whose ends are not told may be longer than the counts say, as these are read later */

/* --- one sleep --- */

static void end_sleep(struct sf_thread *thread)
{
	free(thread->sleep.record);
	thread->sleep = (struct sf_sleep){ 0 };
}

/* The record of its start: in its ring in the same batch, later a copy. */
static bool read_start(struct sf_perf_sleeps *sleeps, const struct sf_sleep *sleep, struct sf_perf_record *ret)
{
	const struct perf_event_header *header = sleep->record;

	if (!header && sleep->batch == sleeps->n_batch)
		header = sf_perf_ring_again(&sleeps->switches.rings[sleep->ring], sleep->place);
	return header && sf_perf_record_parse(header, ret) && ret->regs;
}

/* Once for each batch. False: it has ended. */
static bool measure(struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	if (thread->seen_ns == now_ns)
		return true;
	return sf_thread_measure(thread, now_ns, &ran);
}

/*
 * The time of a sleep, or of its rest, and of sleeps before it that have no samples of their own. Where its end was not
 * told the time contains a wait for a CPU. The thread's counts say how long it slept in all, so what is longer than
 * that is cut.
 */
static struct sf_weight take(struct sf_perf *perf, struct sf_thread *thread, uint64_t new_ns, uint64_t before_ns,
			     bool told, uint64_t now_ns)
{
	uint64_t ns = new_ns + before_ns;
	int64_t more_ns;

	if (!measure(thread, now_ns))
		thread->account.asleep_ns += (int64_t)new_ns;
	thread->account.asleep_ns -= (int64_t)new_ns;
	more_ns = -thread->account.asleep_ns - UNTOLD_NS;
	if (!told && more_ns > 0) {
		const uint64_t cut_ns = (uint64_t)more_ns < ns ? (uint64_t)more_ns : ns;

		thread->account.asleep_ns += (int64_t)cut_ns;
		ns -= cut_ns;
	}
	return sf_thread_take_sleep(thread, ns, perf->base.blocked_period_ns);
}

/* The sleep has no sample: a later one stands for it, too. */
static void put_off(struct sf_thread *thread, uint64_t *sum_ns, uint64_t length_ns)
{
	thread->account.asleep_ns -= (int64_t)length_ns;
	*sum_ns += length_ns;
}

/* A walk has found a copy too short: later ones are longer, as far as that goes. */
static void learn_size(struct sf_perf *perf, struct sf_thread *thread)
{
	if (perf->sleeps.switches.stack_bytes < SF_PERF_MAX_STACK &&
	    atomic_exchange_explicit(&thread->needs.only_cut, false, memory_order_relaxed))
		perf->sleeps.stack_wanted = 4 * perf->sleeps.switches.stack_bytes;
}

/*
 * Chooses by chance, in proportion to the length: the samples that are taken stand for those that are not. *all_ret:
 * one of this length always has room. It stands for itself then.
 */
static bool has_room(struct sf_perf_sleeps *sleeps, uint64_t ns, uint64_t time_ns, bool *all_ret)
{
	struct sf_perf_budget budget = { .part = SF_PERF_ALL };
	bool fine;

	if (sleeps->all_from_ns)
		budget.part = ns >= sleeps->all_from_ns
				      ? SF_PERF_ALL
				      : (uint64_t)((unsigned __int128)SF_PERF_ALL * ns / sleeps->all_from_ns);
	*all_ret = budget.part == SF_PERF_ALL;
	fine = sf_perf_budget_has_room(&budget, time_ns);
	sleeps->n_wanted++;
	sleeps->wanted_ns += ns;
	sleeps->n_sent += fine;
	return fine;
}

/* The sleep of which new_ns are not put off yet. False: it has no sample. */
static bool send(struct sf_perf *perf, struct sf_thread *thread, uint64_t new_ns, uint64_t end_ns, bool told, uint64_t now_ns)
{
	const uint64_t ns = new_ns ? new_ns : thread->sleeps.short_ns, short_ns = new_ns ? 0 : thread->sleeps.short_ns;
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_perf_record record;
	struct sf_perf_wait wait;
	struct sf_weight weight;
	uint64_t over_ns;
	bool all;

	if (!read_start(sleeps, &thread->sleep, &record))
		return false;
	sf_perf_waits_find(sf_perf_sleeps_waits(sleeps), record.chain, record.n_chain, &wait);
	if (wait.has_ended || !has_room(sleeps, ns, record.time_ns, &all))
		return false;
	over_ns = all && thread->sleeps.passed_ns < MAX_OVER_NS ? 0 : thread->sleeps.passed_ns;
	weight = take(perf, thread, new_ns, short_ns + over_ns, told, now_ns);
	thread->sleeps.passed_ns -= over_ns;
	thread->sleeps.short_ns -= short_ns;
	thread->look.state = wait.is_stopped ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
	sf_perf_send_sleep(perf, thread, &record, &wait, end_ns, &weight);
	learn_size(perf, thread);
	return true;
}

static void tell_waker(struct sf_perf *perf, const struct sf_thread *thread)
{
	const struct sf_sleep *sleep = &thread->sleep;

	sf_relay_woken(perf->base.relay, thread, sleep->has_waker ? sleep->waker : -1, sleep->waker_name);
}

/* The sleep has a sample already, which stands for a part of it. */
static void add_rest(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, bool told, uint64_t now_ns)
{
	const uint64_t length_ns = end_ns - thread->sleep.start_ns, given_ns = thread->sleeps.sampled_ns - thread->sleep.before_ns;
	struct sf_weight weight;

	if (end_ns < thread->sleep.start_ns || length_ns <= given_ns)
		return;
	weight = take(perf, thread, length_ns - given_ns, 0, told, now_ns);
	if (weight.wall_ns)
		sf_relay_again(perf->base.relay, thread, end_ns, &weight);
}

/* A sleep that is long enough. */
static void finish_long(struct sf_perf *perf, struct sf_thread *thread, uint64_t length_ns, uint64_t end_ns, bool told,
			uint64_t now_ns)
{
	if (send(perf, thread, length_ns, end_ns, told, now_ns))
		tell_waker(perf, thread);
	else
		put_off(thread, &thread->sleeps.passed_ns, length_ns);
}

static void finish_short(struct sf_perf *perf, struct sf_thread *thread, uint64_t length_ns, uint64_t end_ns, bool told,
			 uint64_t now_ns)
{
	put_off(thread, &thread->sleeps.short_ns, length_ns);
	if (thread->sleeps.short_ns < perf->sleeps.min_ns)
		return;
	if (send(perf, thread, 0, end_ns, told, now_ns)) {
		tell_waker(perf, thread);
	} else {
		thread->sleeps.passed_ns += thread->sleeps.short_ns;
		thread->sleeps.short_ns = 0;
	}
}

/* The thread is on a CPU again. */
static void finish(struct sf_perf *perf, struct sf_thread *thread, uint64_t time_ns, uint64_t now_ns)
{
	const struct sf_sleep *sleep = &thread->sleep;
	const bool told = sleep->woken_ns && sleep->woken_ns <= time_ns;
	const uint64_t end_ns = told ? sleep->woken_ns : time_ns, length_ns = end_ns - sleep->start_ns;

	if (sleep->has_sample) {
		add_rest(perf, thread, end_ns, told, now_ns);
		tell_waker(perf, thread);
	} else if (length_ns >= perf->sleeps.min_ns) {
		finish_long(perf, thread, length_ns, end_ns, told, now_ns);
	} else {
		finish_short(perf, thread, length_ns, end_ns, told, now_ns);
	}
	thread->sampled = false;
	thread->look.state = SF_STATE_RUNNING;
	end_sleep(thread);
}

/* --- records --- */

static bool may_have_sleeps(const struct sf_thread *thread)
{
	return thread && thread->watched && !thread->only_awake && !thread->is_32_bit;
}

/* Keeps the place of the record of the thread's stack: the next record says whether the thread goes to sleep now. */
static void note_stack(struct sf_perf *perf, struct sf_thread *thread, uint32_t ring, uint64_t time_ns)
{
	end_sleep(thread);
	thread->sleep.left_ns = time_ns;
	thread->sleep.place = perf->sleeps.switches.rings[ring].next;
	thread->sleep.ring = ring;
	thread->sleep.batch = perf->sleeps.n_batch;
}

/*
 * Of a thread with a deep stack, or with several, the kernel's copies are not enough. It is also held for its samples,
 * and each hold is a sleep.
 */
static bool is_copied_whole(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return (perf->sleeps.switches.stack_bytes < SF_PERF_MAX_STACK ||
		!atomic_load_explicit(&thread->needs.only_cut, memory_order_relaxed)) &&
	       !sf_thread_needs_longer_copies(thread);
}

/*
 * A thread that goes to sleep, and of whose stack not enough is known, is looked at. While longer copies take the place
 * of shorter ones each switch is told twice: both stacks, and then both records of leaving.
 */
static void leave(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_sleep *sleep = &thread->sleep;

	if (sleep->start_ns)
		return;
	thread->sleeps.are_recorded = record->is_preempted || (is_copied_whole(perf, thread) && sleep->batch == perf->sleeps.n_batch &&
						   sf_vec_push(&perf->sleeps.begun, thread));
	if (record->is_preempted || !thread->sleeps.are_recorded) {
		end_sleep(thread);
		return;
	}
	sleep->start_ns = sleep->left_ns; /* the kernel has taken the copy since */
	sleep->before_ns = thread->sleeps.sampled_ns;
}

void sf_perf_sleeps_switch(struct sf_perf *perf, uint32_t ring, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_thread *thread;

	if (record->type == PERF_RECORD_LOST) {
		perf->sleeps.n_lost += record->n_lost;
		perf->sleeps.lost_some = true;
	}
	if (record->tid <= 0 || (record->type != PERF_RECORD_SAMPLE && record->type != PERF_RECORD_SWITCH &&
				 record->type != PERF_RECORD_SWITCH_CPU_WIDE))
		return;
	perf->sleeps.n_switches += record->type == PERF_RECORD_SAMPLE;
	thread = sf_perf_thread_of(perf, record, record->type == PERF_RECORD_SAMPLE, now_ns);
	if (!may_have_sleeps(thread) || record->time_ns < thread->sleeps.from_ns)
		return;
	if (record->type == PERF_RECORD_SAMPLE) {
		note_stack(perf, thread, ring, record->time_ns);
	} else if (record->leaves) {
		leave(perf, thread, record);
	} else {
		thread->sleeps.are_recorded = true;
		if (thread->sleep.start_ns && record->time_ns >= thread->sleep.start_ns)
			finish(perf, thread, record->time_ns, now_ns);
	}
}

/*
 * In an interrupt the thread that is interrupted has nothing to do with it: TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ
 * of common_flags.
 */
#define FLAGS_OFFSET 2
#define IN_INTERRUPT 0x18

static void note_waker(struct sf_perf *perf, struct sf_sleep *sleep, const struct sf_perf_record *record)
{
	const struct sf_thread *waker;

	sleep->has_waker = true;
	sleep->waker = record->raw[FLAGS_OFFSET] & IN_INTERRUPT ? 0 : record->tid;
	waker = sf_watch_find(&perf->base.watch, sleep->waker);
	if (waker)
		memcpy(sleep->waker_name, waker->name, sizeof(waker->name));
	else if (sleep->waker > 0 && !sf_task_name(record->pid, record->tid, sleep->waker_name))
		sleep->waker_name[0] = 0;
}

void sf_perf_sleeps_waking(struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_thread *thread;
	uint16_t tracepoint;
	int32_t tid;

	if (record->type == PERF_RECORD_LOST)
		sleeps->n_lost_wakings += record->n_lost;
	if (record->type != PERF_RECORD_SAMPLE || record->raw_size < (uint32_t)sleeps->woken_offset + sizeof(tid))
		return;
	sleeps->n_wakings++;
	sleeps->n_wakings_ever++;
	memcpy(&tracepoint, record->raw, sizeof(tracepoint));
	memcpy(&tid, record->raw + sleeps->woken_offset, sizeof(tid));
	thread = sf_watch_find(&perf->base.watch, tid);
	/* It may be woken while the kernel still copies its stack. */
	if (!thread || !thread->sleep.left_ns || thread->sleep.woken_ns || record->time_ns < thread->sleep.left_ns)
		return;
	if (tracepoint == sleeps->waking)
		note_waker(perf, &thread->sleep, record);
	else
		thread->sleep.woken_ns = record->time_ns;
}

/* --- the end of a batch --- */

/* As far as is known at the end of a batch. */
static uint64_t end_of(const struct sf_perf *perf, const struct sf_sleep *sleep)
{
	return sleep->woken_ns ? sleep->woken_ns : perf->sleeps.began_ns;
}

/* The thread sleeps on. Its further time is added by looks. */
static void send_open(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_sleep *sleep = &thread->sleep;
	const uint64_t end_ns = end_of(perf, sleep);

	sleep->has_sample = send(perf, thread, end_ns - sleep->start_ns, end_ns, true, now_ns);
	sleep->before_ns = thread->sleeps.sampled_ns - (end_ns - sleep->start_ns);
	thread->sleeps.are_recorded = sleep->has_sample;
	thread->asleep_due_ns = now_ns + perf->base.blocked_period_ns; /* the walk has shown by then whether the copy was too short */
	free(sleep->record);
	sleep->record = NULL;
}

/* False: it does not sleep any more, or has its sample. */
static bool is_waiting(const struct sf_thread *thread)
{
	return thread->sleep.start_ns && !thread->sleep.has_sample;
}

static bool is_long(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return end_of(perf, &thread->sleep) >= thread->sleep.start_ns + perf->sleeps.min_ns;
}

/* The rings' room is the kernel's again after the batch. */
static void keep(struct sf_perf_sleeps *sleeps, struct sf_thread *thread)
{
	const struct perf_event_header *header =
		sf_perf_ring_again(&sleeps->switches.rings[thread->sleep.ring], thread->sleep.place);

	const struct sf_perf_kept_sleep kept = { .tid = thread->task.tid, .n_bytes = header ? header->size : 0 };

	if (!header || sleeps->n_kept_bytes + kept.n_bytes > MAX_KEPT_BYTES || !sf_vec_push(&sleeps->kept, kept)) {
		thread->sleeps.are_recorded = false;
		return;
	}
	sleeps->n_kept_bytes += kept.n_bytes;
	thread->sleep.record = malloc(kept.n_bytes);
	if (thread->sleep.record)
		memcpy(thread->sleep.record, header, kept.n_bytes);
}

static void end_kept(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	size_t n_left = 0;

	for (size_t i = 0; i < sleeps->kept.n; i++) {
		const struct sf_perf_kept_sleep kept = sleeps->kept.items[i];
		struct sf_thread *thread = sf_watch_find(&perf->base.watch, kept.tid);
		const bool waits = thread && thread->sleep.record && is_waiting(thread);

		if (waits && !is_long(perf, thread)) {
			sleeps->kept.items[n_left++] = kept;
			continue;
		}
		if (waits)
			send_open(perf, thread, now_ns);
		sleeps->n_kept_bytes -= kept.n_bytes;
	}
	sleeps->kept.n = n_left;
}

void sf_perf_sleeps_end(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;

	if (!sleeps->on)
		return;
	if (sleeps->lost_some)
		sf_perf_sleeps_forget(perf);
	sleeps->lost_some = false;
	end_kept(perf, now_ns);
	for (size_t i = 0; i < sleeps->begun.n; i++) {
		struct sf_thread *thread = sleeps->begun.items[i];

		if (!is_waiting(thread) || thread->sleep.record || thread->sleep.batch != sleeps->n_batch)
			continue;
		if (is_long(perf, thread))
			send_open(perf, thread, now_ns);
		else
			keep(sleeps, thread);
	}
	sleeps->begun.n = 0;
	sf_perf_events_end(&sleeps->switches);
	if (sleeps->has_wakings)
		sf_perf_events_end(&sleeps->wakings);
}

/*
 * The wakings after the switches: what has woken a thread that is on its CPU again is among them, also if this thread
 * stood in between.
 */
uint64_t sf_perf_sleeps_begin(struct sf_perf_sleeps *sleeps)
{
	uint64_t n_bytes;

	if (!sleeps->on)
		return 0;
	sleeps->n_batch++;
	sleeps->n_switches = sleeps->n_wakings = sleeps->n_sent = sleeps->n_wanted = sleeps->wanted_ns = 0;
	sleeps->began_ns = sf_now_ns();
	n_bytes = sf_perf_events_begin(&sleeps->switches);
	if (sleeps->has_wakings)
		n_bytes += sf_perf_events_begin(&sleeps->wakings);
	return n_bytes;
}

/* --- looks --- */

/* The sleep goes on, and the kernel's copy of its stack was too short: a look can read all of it. */
static bool look_instead(struct sf_perf *perf, struct sf_thread *thread)
{
	if (!atomic_load_explicit(&thread->needs.only_cut, memory_order_relaxed))
		return false;
	learn_size(perf, thread);
	sf_perf_sleeps_forget_thread(thread);
	return true;
}

/* Until the batch's begin, since all that was told is known of that time: a thread that was woken waits for a CPU. */
bool sf_perf_sleeps_look(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!thread->sleeps.are_recorded)
		return false;
	thread->asleep_due_ns = now_ns + EXTEND_NS;
	if (!thread->sleep.has_sample || thread->sleep.woken_ns)
		return true;
	add_rest(perf, thread, perf->sleeps.began_ns, true, now_ns);
	return !look_instead(perf, thread);
}

/* The time before that is in the look's sample, also where its records are not read yet. */
void sf_perf_sleeps_looked(struct sf_perf *perf, struct sf_thread *thread)
{
	if (!perf->sleeps.on || !thread->sampled || thread->sleep.has_sample)
		return;
	end_sleep(thread);
	thread->sleeps.from_ns = thread->sleep.start_ns = thread->sleep.left_ns = sf_now_ns();
	thread->sleep.before_ns = thread->sleeps.sampled_ns;
	thread->sleep.has_sample = true;
}
