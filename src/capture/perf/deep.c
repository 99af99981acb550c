/* SPDX-License-Identifier: Apache-2.0 */
/* Holds threads of whose stacks the kernel's copies are not enough. */
#include "capture/perf/deep.h"

#include "capture/perf/perf.h"
#include "os/cpu.h"

#define IDLE_LOOKS 40 /* in a row that found the thread asleep, after which it is due no more before its next sample */

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
static bool waits_for_displacement(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->use.is_some && !perf->base.displacement.is_missing &&
	       !sf_thread_is_overdue(thread, perf->base.period_ns);
}

/* False: the thread is gone. */
static bool look(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
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
static void hold(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->hold.is_requested || !look(perf, thread, now_ns) || !sf_thread_awake(thread) || waits_for_displacement(perf, thread))
		return;
	sf_ptrace_hold(&perf->base, thread, now_ns);
	note_hold(perf, thread);
}

/* Each look costs, and so do the short batches for the sake of a thread that is due. */
static bool is_due(const struct sf_thread *thread)
{
	return thread->batch.n_held && thread->n_same < IDLE_LOOKS;
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
		hold(perf, thread, now_ns);
		perf->deep.n_due += is_due(thread);
	}
}

uint64_t sf_perf_deep_need(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return thread->batch.n_held && !thread->hold.is_requested && waits_for_displacement(perf, thread) ? 1 + thread->account.cpu_ns : 0;
}

void sf_perf_deep_catch(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!look(perf, thread, now_ns))
		return;
	sf_ptrace_sample_displaced(&perf->base, thread, now_ns);
	note_hold(perf, thread);
}
