/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the threads of which the events do not show enough: those with deep stacks, and those with CPU time in the kernel. */
#include "capture/perf/holds.h"

#include "capture/perf/perf.h"
#include "frozen/signal/ticks.h"
#include "os/clock.h"
#include "os/cpu.h"

#define DEEP_IDLE_LOOKS 40   /* in a row that found a thread asleep, after which it is due no more before its next sample */
#define SOUGHT_IDLE_LOOKS 40 /* in a row that found no reason to hold a thread, after which it is not sought any more */
#define LATE_PART 64         /* of samples' periods: so much more CPU time may be theirs, as a clock's interrupt comes late; ... */
#define LATE_PART_LOST 20    /* ... and where no hold would find the rest */
#define WAITS_NS 20000000    /* of time that is a loss, which may wait for a sample ... */
#define WAITS_PERIODS 4      /* ... and so many periods */
#define OTHERS_NS 50000000   /* between two looks at threads without samples */
#define OVERDUE_PERIODS 40   /* of CPU time in the kernel, without a sample */

/* --- deep stacks --- */

bool sf_perf_deep_is(const struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	if (!perf->may_hold || record->pid == perf->own_pid)
		return false;
	if (sf_thread_needs_longer_copies(thread))
		return !sf_perf_whole_size(thread, record);
	return sf_perf_stack_is_longest(perf->events.stack_bytes) && sf_perf_is_cut(thread, record);
}

void sf_perf_deep_want(struct sf_perf *perf, struct sf_thread *thread)
{
	if (!perf->deep.is_prompt)
		sf_cpu_prefer();
	perf->deep.is_prompt = true;
	if (!thread->batch.n_held++ || !perf->deep.n_due)
		perf->deep.n_due++;
}

/* Whether the thread is held when it is displaced. One that was not displaced for long is held where it is found. */
static bool deep_waits(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->use.is_some && !perf->base.displacement.is_missing &&
	       !sf_thread_is_overdue(thread, perf->base.period_ns);
}

/* False: the thread is gone. */
static bool look_at_deep(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	thread->kernel_time.holds = false;
	return sf_watch_look_to_hold(&perf->base.watch, thread, now_ns);
}

/*
 * The hold has its time. Where it had no evidence, the time waits for another one; and where the thread is yet to stand, it
 * waits until it is known whether its stack is deep there.
 */
static void note_hold(struct sf_perf *perf, struct sf_thread *thread)
{
	perf->n_samples++;
	if (!thread->hold.is_requested && !thread->account.cpu_ns)
		thread->batch.n_held = 0;
}

/* A thread that sleeps by now is not held: its CPU time waits for a hold, or for its end. */
static void hold_deep(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->hold.is_requested || !look_at_deep(perf, thread, now_ns) || !sf_thread_awake(thread) || deep_waits(perf, thread))
		return;
	sf_ptrace_hold(&perf->base, thread, now_ns);
	note_hold(perf, thread);
}

/* Each look costs, and so do the short batches for the sake of a thread that is due. */
static bool is_deep_due(const struct sf_thread *thread)
{
	return thread->batch.n_held && !thread->exited_ns && thread->n_same < DEEP_IDLE_LOOKS;
}

void sf_perf_deep_hold(struct sf_perf *perf, uint64_t now_ns)
{
	const struct sf_watch *watch = &perf->base.watch;
	const bool some_are_due = perf->deep.n_due;

	perf->deep.n_due = 0;
	for (size_t i = 0; some_are_due && i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!thread->batch.n_held)
			continue;
		thread->batch.held_ns = thread->account.cpu_ns;
		hold_deep(perf, thread, now_ns);
		perf->deep.n_due += is_deep_due(thread);
	}
}

uint64_t sf_perf_deep_need(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->batch.n_held && !thread->hold.is_requested && deep_waits(perf, thread) ? 1 + thread->account.cpu_ns : 0;
}

void sf_perf_deep_catch(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!look_at_deep(perf, thread, now_ns))
		return;
	sf_ptrace_sample_displaced(&perf->base, thread, now_ns);
	note_hold(perf, thread);
}

/* --- CPU time in the kernel --- */

void sf_perf_kernel_time_begin(struct sf_perf *perf)
{
	perf->kernel_time.on = !perf->events.kernel && perf->may_hold && perf->base.period_ns;
	if (perf->kernel_time.on)
		sf_cpu_prefer();
}

static bool may_seek(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return perf->kernel_time.on && sf_thread_is_sampled(thread) && thread->task.pid != perf->own_pid && !thread->is_32_bit &&
	       !sf_thread_needs_longer_copies(thread);
}

static bool is_sought(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->kernel_time.is_sought && !thread->hold.is_requested && may_seek(perf, thread);
}

static void seek(struct sf_thread *thread)
{
	thread->kernel_time.is_sought = true;
	thread->kernel_time.n_idle = 0;
}

/* For a sample. Its last period may be one in user mode that has no sample yet. */
static bool has_time(const struct sf_perf *perf, uint64_t beyond_ns)
{
	return beyond_ns >= 2 * perf->base.period_ns;
}

static void lose(struct sf_perf *perf, struct sf_thread *thread)
{
	const uint64_t period_ns = perf->base.period_ns, cpu_ns = thread->account.beyond_ns - period_ns;
	const struct sf_weight weight = { .cpu_ns = cpu_ns, .wall_ns = cpu_ns, .ticks = sf_ticks(cpu_ns, period_ns) };

	thread->account.beyond_ns -= cpu_ns;
	thread->account.awake_ns -= (int64_t)cpu_ns;
	sf_relay_loss(perf->base.relay, thread, SF_LOSS_KERNEL, &weight);
}

/*
 * The time beyond waits, since a batch may end just before a sample. unread_ns: for so long the thread may have run in user mode,
 * with samples that are not read yet.
 */
static void set_apart(struct sf_perf *perf, struct sf_thread *thread, uint64_t unread_ns)
{
	const uint64_t periods_ns = thread->batch.period_ns + thread->batch.passed_ns, period_ns = perf->base.period_ns;
	const uint64_t seen_ns = periods_ns + periods_ns / (perf->kernel_time.on ? LATE_PART : LATE_PART_LOST) + unread_ns;

	if (perf->events.kernel)
		return;
	thread->account.cpu_ns += thread->account.beyond_ns;
	thread->account.beyond_ns = thread->account.cpu_ns > seen_ns ? thread->account.cpu_ns - seen_ns : 0;
	thread->account.cpu_ns -= thread->account.beyond_ns;
	if (!perf->kernel_time.on && thread->account.beyond_ns > WAITS_NS + WAITS_PERIODS * period_ns)
		lose(perf, thread);
}

/* The count is read after the rings: long after them where stillframe waits for a CPU. */
void sf_perf_kernel_time_split(struct sf_perf *perf, struct sf_thread *thread)
{
	const uint64_t counted_ns = thread->on_cpu.counted_ns, began_ns = perf->events.began_ns;

	set_apart(perf, thread, counted_ns > began_ns ? counted_ns - began_ns : 0);
	if (may_seek(perf, thread) && (!thread->ran || has_time(perf, thread->account.beyond_ns)))
		seek(thread);
}

void sf_perf_kernel_time_look(struct sf_perf *perf, struct sf_thread *thread)
{
	if (may_seek(perf, thread) && has_time(perf, thread->account.cpu_ns + thread->account.beyond_ns))
		seek(thread);
}

/* False: there is no reason to hold it. */
static bool look_at_sought(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!sf_watch_look_to_hold(&perf->base.watch, thread, now_ns))
		return false;
	set_apart(perf, thread, 0);
	return has_time(perf, thread->account.beyond_ns);
}

/* Whether the thread is held when it is displaced, and not where it is found. Not if that was never the case for long. */
static bool sought_waits(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->use.is_much && !perf->base.displacement.is_missing &&
	       thread->account.beyond_ns <= OVERDUE_PERIODS * perf->base.period_ns;
}

/* False: there was no reason to hold it. */
static bool hold_sought(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!look_at_sought(perf, thread, now_ns) || !sf_thread_awake(thread))
		return false;
	if (sought_waits(perf, thread))
		return true;
	thread->kernel_time.holds = true;
	sf_ptrace_hold(&perf->base, thread, now_ns);
	return true;
}

uint64_t sf_perf_kernel_time_need(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return is_sought(perf, thread) && thread->use.is_much ? 1 + thread->account.beyond_ns : 0;
}

void sf_perf_kernel_time_catch(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!look_at_sought(perf, thread, now_ns))
		return;
	thread->kernel_time.holds = true;
	sf_ptrace_sample_displaced(&perf->base, thread, now_ns);
}

/* Where sleeping threads are not sampled, this is the only look at a thread that has no sample. */
static void look_at_others(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_watch *watch = &perf->base.watch;
	bool ran;

	if (!perf->kernel_time.on || perf->base.blocked_period_ns || now_ns < perf->next_others_ns)
		return;
	perf->next_others_ns = now_ns + OTHERS_NS;
	if (sf_watch_others_ran(watch) <= perf->base.period_ns)
		return;
	for (size_t i = 0; i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!thread->kernel_time.is_sought && sf_thread_measure(thread, now_ns, &ran) && ran)
			sf_perf_kernel_time_look(perf, thread);
	}
	sf_watch_looked_at_all(watch);
}

void sf_perf_kernel_time_seek(struct sf_perf *perf, uint64_t now_ns)
{
	perf->kernel_time.n_sought = 0;
	look_at_others(perf, now_ns);
	for (size_t i = 0; perf->kernel_time.on && i < perf->base.watch.threads.n; i++) {
		struct sf_thread *thread = perf->base.watch.threads.items[i];

		if (!is_sought(perf, thread))
			continue;
		perf->kernel_time.n_sought++;
		if (perf->base.n_requested || !sf_perf_budget_has_room(&perf->budget, now_ns + (uint64_t)thread->task.tid))
			continue;
		if (hold_sought(perf, thread, now_ns))
			thread->kernel_time.n_idle = 0;
		else if (++thread->kernel_time.n_idle >= SOUGHT_IDLE_LOOKS)
			thread->kernel_time.is_sought = false;
	}
}

/* --- threads that are displaced, of both kinds --- */

unsigned sf_perf_n_to_displace(const struct sf_perf *perf)
{
	return perf->kernel_time.n_sought + perf->deep.n_due;
}

static uint64_t need(const struct sf_capture *capture, const struct sf_thread *thread)
{
	const struct sf_perf *perf = (const struct sf_perf *)capture;
	const uint64_t deep = sf_perf_deep_need(perf, thread);

	return deep ? deep : sf_perf_kernel_time_need(perf, thread);
}

void sf_perf_aim(struct sf_perf *perf, uint64_t until_ns)
{
	if (!sf_perf_n_to_displace(perf) || !sf_ptrace_aim(&perf->base, need, until_ns))
		sf_cpu_move(-1);
}

void sf_perf_catch_displaced(struct sf_perf *perf)
{
	const uint64_t now_ns = sf_now_ns();
	struct sf_thread *thread = sf_ptrace_displaced(&perf->base, need);

	if (!thread || !sf_perf_budget_has_room(&perf->budget, now_ns))
		return;
	if (sf_perf_deep_need(perf, thread))
		sf_perf_deep_catch(perf, thread, now_ns);
	else
		sf_perf_kernel_time_catch(perf, thread, now_ns);
}
