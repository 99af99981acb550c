/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the samples of a sleep, and adds the sleep's time to them. */
#include "capture/perf/sleep_sample.h"

#include <stdlib.h>

#include "capture/perf/perf.h"
#include "os/clock.h"

#define MAX_OVER_NS 100000000 /* that were passed over: the next sample stands for them, whichever it is */
#define UNRECORDED_MIN_NS 1000000 /* of sleeps whose records were lost: less is what a count is late by */
#define UNRECORDED_NS 5000000     /* by which sleeps whose ends are not recorded may be longer than the counts say, as these are read later */

void sf_perf_sleep_forget(struct sf_thread *thread)
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

/* To read the kernel's symbols for the first time since it began takes some 70 ms, for which a command need not wait. */
static const struct sf_perf_waits *waits_of(struct sf_perf_sleeps *sleeps)
{
	struct sf_kernel_symbols symbols = { 0 };

	if (sleeps->knows_kernel)
		return &sleeps->waits;
	sleeps->knows_kernel = true;
	if (sf_kernel_symbols_load_own(&symbols))
		sf_perf_waits_take(&sleeps->waits, &symbols);
	sf_kernel_symbols_deinit(&symbols);
	return &sleeps->waits;
}

/*
 * Once for each batch, which began at now_ns. The counts are of the present moment: on a busy machine that is long after the
 * batch's begin, and the thread may have run all that time. False: it has ended.
 */
static bool measure(struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	if (thread->seen_ns >= now_ns)
		return true;
	return sf_thread_measure(thread, sf_now_ns(), &ran);
}

/*
 * The time that the thread has slept, by the kernel's counts, and that is in no sleep of which a record was read: records were
 * lost. All sleeps until end_ns are read, and since then it may have slept until the counts were.
 */
static uint64_t take_unrecorded(struct sf_thread *thread, uint64_t end_ns)
{
	const uint64_t later_ns = thread->seen_ns > end_ns ? thread->seen_ns - end_ns : 0;
	const int64_t ns = thread->account.asleep_ns - (int64_t)later_ns;

	if (ns < UNRECORDED_MIN_NS)
		return 0;
	thread->account.asleep_ns -= ns;
	return (uint64_t)ns;
}

/*
 * Sleeps are as long as the records of their ends say. A part that the kernel has counted as a wait for a CPU all the same, as
 * Linux 6.12 and later may (sf_thread_measure()), was no time awake.
 */
static void correct_wait(struct sf_thread *thread, uint64_t end_ns)
{
	const uint64_t unread_ns = end_ns > thread->seen_ns ? end_ns - thread->seen_ns : 0;
	const int64_t wrong_ns = -thread->account.asleep_ns - (int64_t)unread_ns - UNRECORDED_NS;

	if (wrong_ns <= 0)
		return;
	thread->account.asleep_ns += wrong_ns;
	thread->account.awake_ns -= wrong_ns;
}

/*
 * The time of a sleep, or of its rest, until end_ns, and of sleeps before it that have no samples of their own. Without a record
 * of its end (has_end) the time contains a wait for a CPU. The thread's counts say how long it slept in all, so what is longer
 * than that is cut.
 */
static struct sf_weight take(struct sf_perf *perf, struct sf_thread *thread, uint64_t new_ns, uint64_t before_ns,
			     uint64_t end_ns, bool has_end, uint64_t now_ns)
{
	uint64_t ns = new_ns + before_ns;
	int64_t more_ns;

	if (measure(thread, now_ns))
		sf_thread_take_off_sleep(thread, new_ns, end_ns);
	if (has_end)
		correct_wait(thread, end_ns);
	more_ns = -thread->account.asleep_ns - UNRECORDED_NS;
	if (!has_end && more_ns > 0) {
		const uint64_t cut_ns = (uint64_t)more_ns < ns ? (uint64_t)more_ns : ns;

		thread->account.asleep_ns += (int64_t)cut_ns;
		ns -= cut_ns;
	}
	return sf_thread_take_sleep(thread, ns + take_unrecorded(thread, end_ns), perf->base.blocked_period_ns);
}

/* The sleep has no sample: a later one stands for it, too. */
static void put_off(struct sf_thread *thread, uint64_t *sum_ns, uint64_t length_ns, uint64_t end_ns)
{
	sf_thread_take_off_sleep(thread, length_ns, end_ns);
	*sum_ns += length_ns;
}

void sf_perf_sleep_forget_cut(struct sf_thread *thread)
{
	if (!sf_perf_stack_is_longest(atomic_load_explicit(&thread->needs.only_cut, memory_order_relaxed)))
		atomic_store_explicit(&thread->needs.only_cut, 0, memory_order_relaxed);
}

/*
 * Whether it is the thread's first sleep with a sample: all sleeps of a thread without one are a loss. Such walks may run
 * into debt, as a burst does.
 */
static bool is_first(const struct sf_perf_sleeps *sleeps, const struct sf_thread *thread)
{
	return !thread->sleeps.sampled_ns &&
	       sleeps->credit_ns + SF_PERF_WALK_CREDIT_NS > (int64_t)(sleeps->n_sent * SF_PERF_WALK_COST_NS);
}

/*
 * Chooses by chance, in proportion to the length: the samples that are taken stand for those that are not. The chance is
 * the same each time, so a sleep that goes on has room as soon as it is long enough. *all_ret: one of this length always
 * has room. It stands for itself then.
 */
static bool has_room(struct sf_perf_sleeps *sleeps, struct sf_thread *thread, uint64_t ns, bool *all_ret)
{
	struct sf_sleep *sleep = &thread->sleep;
	struct sf_perf_budget budget = { .part = SF_PERF_ALL };
	bool fine;

	if (sleeps->all_from_ns)
		budget.part = ns >= sleeps->all_from_ns
				      ? SF_PERF_ALL
				      : (uint64_t)((unsigned __int128)SF_PERF_ALL * ns / sleeps->all_from_ns);
	if (is_first(sleeps, thread))
		budget.part = SF_PERF_ALL;
	*all_ret = budget.part == SF_PERF_ALL;
	fine = sf_perf_budget_has_room(&budget, sleep->left_ns);
	sleeps->n_wanted += !sleep->wanted_ns;
	sleeps->wanted_ns += ns > sleep->wanted_ns ? ns - sleep->wanted_ns : 0;
	sleeps->n_sent += fine && !sleep->had_room;
	sleep->had_room |= fine;
	sleep->wanted_ns = ns;
	return fine;
}

enum sent {
	SENT,
	NO_ROOM,        /* the cost limit passes it over */
	NO_STACK,
};

/* The sleep of which new_ns are not put off yet. */
static enum sent send(struct sf_perf *perf, struct sf_thread *thread, uint64_t new_ns, uint64_t end_ns, bool has_end, uint64_t now_ns)
{
	const uint64_t ns = new_ns ? new_ns : thread->sleeps.short_ns, short_ns = new_ns ? 0 : thread->sleeps.short_ns;
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_perf_record record;
	struct sf_perf_wait wait;
	struct sf_weight weight;
	uint64_t over_ns;
	bool all;

	if (!has_room(sleeps, thread, ns, &all) && !perf->base.last_tick)
		return NO_ROOM;
	if (!read_start(sleeps, &thread->sleep, &record))
		return NO_STACK;
	sf_perf_waits_find(waits_of(sleeps), record.kernel, record.n_kernel, &wait);
	if (wait.has_ended)
		return NO_STACK;
	over_ns = all && thread->sleeps.passed_ns < MAX_OVER_NS ? 0 : thread->sleeps.passed_ns;
	weight = take(perf, thread, new_ns, short_ns + over_ns, end_ns, has_end, now_ns);
	thread->sleeps.passed_ns -= over_ns;
	thread->sleeps.short_ns -= short_ns;
	thread->look.state = wait.is_stopped ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
	sf_perf_send_sleep(perf, thread, &record, &wait, end_ns, &weight);
	sf_perf_sleep_forget_cut(thread);
	return SENT;
}

static void send_waker(struct sf_perf *perf, const struct sf_thread *thread)
{
	const struct sf_sleep *sleep = &thread->sleep;

	sf_relay_woken(perf->base.relay, thread, sleep->has_waker ? sleep->waker : -1, sleep->waker_name);
}

/* The sleep has a sample already, which stands for a part of it. */
static void add_rest(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, bool has_end, uint64_t now_ns)
{
	const uint64_t length_ns = end_ns - thread->sleep.start_ns, given_ns = thread->sleeps.sampled_ns - thread->sleep.before_ns;
	struct sf_weight weight;

	if (end_ns < thread->sleep.start_ns || length_ns <= given_ns)
		return;
	weight = take(perf, thread, length_ns - given_ns, 0, end_ns, has_end, now_ns);
	if (weight.wall_ns)
		sf_relay_again(perf->base.relay, thread, end_ns, &weight);
}

void sf_perf_sleep_extend(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, uint64_t now_ns)
{
	add_rest(perf, thread, end_ns, true, now_ns);
}

bool sf_perf_sleep_send_open(struct sf_perf *perf, struct sf_thread *thread, uint64_t end_ns, uint64_t now_ns)
{
	struct sf_sleep *sleep = &thread->sleep;
	const enum sent sent = send(perf, thread, end_ns - sleep->start_ns, end_ns, true, now_ns);

	if (sent == NO_ROOM)
		return false;
	sleep->has_sample = sent == SENT;
	sleep->before_ns = thread->sleeps.sampled_ns - (end_ns - sleep->start_ns);
	free(sleep->record);
	sleep->record = NULL;
	return true;
}

/* A sleep that is long enough. */
static void finish_long(struct sf_perf *perf, struct sf_thread *thread, uint64_t length_ns, uint64_t end_ns, bool has_end,
			uint64_t now_ns)
{
	if (send(perf, thread, length_ns, end_ns, has_end, now_ns) == SENT)
		send_waker(perf, thread);
	else
		put_off(thread, &thread->sleeps.passed_ns, length_ns, end_ns);
}

static void finish_short(struct sf_perf *perf, struct sf_thread *thread, uint64_t length_ns, uint64_t end_ns, bool has_end,
			 uint64_t now_ns)
{
	put_off(thread, &thread->sleeps.short_ns, length_ns, end_ns);
	if (thread->sleeps.short_ns < perf->sleeps.min_ns)
		return;
	if (send(perf, thread, 0, end_ns, has_end, now_ns) == SENT) {
		send_waker(perf, thread);
	} else {
		thread->sleeps.passed_ns += thread->sleeps.short_ns;
		thread->sleeps.short_ns = 0;
	}
}

void sf_perf_sleep_finish(struct sf_perf *perf, struct sf_thread *thread, uint64_t time_ns, uint64_t now_ns)
{
	const struct sf_sleep *sleep = &thread->sleep;
	const bool has_end = sleep->woken_ns && sleep->woken_ns <= time_ns;
	const uint64_t end_ns = has_end ? sleep->woken_ns : time_ns, length_ns = end_ns - sleep->start_ns;

	thread->sleep.to_read = false;
	if (sleep->has_sample) {
		add_rest(perf, thread, end_ns, has_end, now_ns);
		send_waker(perf, thread);
	} else if (length_ns >= perf->sleeps.min_ns) {
		finish_long(perf, thread, length_ns, end_ns, has_end, now_ns);
	} else {
		finish_short(perf, thread, length_ns, end_ns, has_end, now_ns);
	}
	thread->sampled = false;
	thread->look.state = SF_STATE_RUNNING;
	sf_perf_sleep_forget(thread);
}
