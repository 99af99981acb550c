/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places the holding thread on the CPU of another thread, finds out which thread it displaced there, and samples that one:
 * displaced.h says why.
 */
#include "capture/ptrace/displaced.h"

#include "capture/ptrace/ptrace.h"
#include "capture/ptrace/stack_copy.h"
#include "frozen/random.h"
#include "os/clock.h"
#include "os/cpu.h"

#define AT_ONCE_NS 5000 /* a thread on its way into a sleep sleeps within this time, too */
#define CALL_NS 25000   /* a system call that sends to another thread takes so long, with the other's wake-up */
#define MOST_CANDIDATES 16 /* that are compared with the holding thread, at a time */

/* --- the displacement --- */

void sf_displacement_aim(struct sf_displacement *displacement, const struct sf_task *self, struct sf_thread *thread, uint64_t until_ns)
{
	const int cpu = displacement->is_missing ? -1 : sf_task_cpu(&thread->task);
	struct sf_task_run run;

	displacement->is_aimed = false;
	if (cpu < 0)
		return;
	sf_cpu_move(cpu);
	if (!sf_task_run(self, &run))
		return;
	displacement->is_aimed = true;
	displacement->tid = thread->task.tid;
	displacement->wait_ns = run.wait_ns;
	displacement->until_ns = until_ns;
}

bool sf_displacement_woke(struct sf_displacement *displacement, struct sf_task *self)
{
	struct sf_task_run run;

	if (!displacement->is_aimed)
		return false;
	displacement->is_aimed = false;
	if (sf_now_ns() < displacement->until_ns || !sf_task_run(self, &run))
		return false;
	displacement->waited_ns = run.wait_ns - displacement->wait_ns;
	displacement->turn_ns = sf_task_turn_ns(self);
	displacement->is_missing = !displacement->turn_ns;
	return displacement->turn_ns;
}

bool sf_displacement_is_of(const struct sf_displacement *displacement, struct sf_thread *thread)
{
	return sf_task_turn_ns(&thread->task) == displacement->turn_ns;
}

enum sf_displaced_place sf_displacement_place(const struct sf_displacement *displacement, const struct sf_thread *thread,
					      bool machine_is_busy)
{
	if (displacement->waited_ns <= AT_ONCE_NS)
		return SF_DISPLACED_ANYWHERE;
	if (!sf_thread_awake(thread))
		return SF_DISPLACED_NOWHERE;
	return displacement->waited_ns <= CALL_NS || !machine_is_busy ? SF_DISPLACED_IN_CALL : SF_DISPLACED_NOWHERE;
}

/* --- the sample --- */

bool sf_ptrace_aim(struct sf_capture *capture, sf_ptrace_need_fn *need, uint64_t until_ns)
{
	struct sf_thread *chosen = NULL;
	uint64_t sum = 0;

	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];
		const uint64_t needed = need(capture, thread);

		if (needed <= SF_PTRACE_NEEDS_NONE)
			continue;
		sum += needed;
		if (sf_random(&capture->random) % sum < needed)
			chosen = thread;
	}
	if (chosen)
		sf_displacement_aim(&capture->displacement, &capture->hold_time.self, chosen, until_ns);
	return chosen;
}

/* Since the last look at it. This costs a fifth of the comparison with the holding thread. */
static bool has_run(struct sf_thread *thread)
{
	struct sf_task_run run;

	return sf_task_run(&thread->task, &run) && run.cpu_ns != thread->run.cpu_ns;
}

/* The one that the holding thread aimed at first, and then some others that may have run in its place. */
static struct sf_thread *find_displaced(struct sf_capture *capture, sf_ptrace_need_fn *need)
{
	const struct sf_watch *watch = &capture->watch;
	const size_t start = watch->threads.n ? sf_random(&capture->random) % watch->threads.n : 0;
	struct sf_thread *thread = sf_watch_find(watch, capture->displacement.tid);
	unsigned n = 0;

	if (thread && need(capture, thread) && sf_displacement_is_of(&capture->displacement, thread))
		return thread;
	for (size_t i = 0; i < watch->threads.n && n < MOST_CANDIDATES; i++) {
		thread = watch->threads.items[(start + i) % watch->threads.n];
		if (!need(capture, thread) || !has_run(thread))
			continue;
		n++;
		if (sf_displacement_is_of(&capture->displacement, thread))
			return thread;
	}
	return NULL;
}

struct sf_thread *sf_ptrace_displaced(struct sf_capture *capture, sf_ptrace_need_fn *need)
{
	return sf_displacement_woke(&capture->displacement, &capture->hold_time.self) ? find_displaced(capture, need) : NULL;
}

/* It ran in the call in which it sleeps now. No sample if it has moved on meanwhile. */
static void read_displaced(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	const struct sf_copy_plan plan = sf_thread_copy_plan(thread);
	struct sf_stack_copy *copy = sf_relay_reserve(capture->relay, sf_copy_plan_room(&plan));
	uint64_t hold_ns = 0;
	struct sf_weight weight;

	if (!copy)
		return; /* its time waits for the next one */
	if (sf_ptrace_copy_asleep(capture, thread, &plan, copy) != SF_COPY_DONE ||
	    !sf_ptrace_weigh_awake(capture, thread, true, true, &hold_ns, copy, &weight)) {
		sf_relay_drop(capture->relay);
		return;
	}
	copy->syscall = SF_SYSCALL_NONE;
	copy->time_ns = now_ns;
	sf_relay_send(capture->relay, thread, &weight, hold_ns);
}

void sf_ptrace_sample_displaced(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	const enum sf_displaced_place place = sf_displacement_place(&capture->displacement, thread, !capture->limit.is_half_idle);

	if (place == SF_DISPLACED_NOWHERE || thread->is_32_bit)
		return;
	if (!sf_thread_awake(thread)) {
		read_displaced(capture, thread, now_ns);
		return;
	}
	thread->hold.displaced = place;
	sf_ptrace_hold(capture, thread, now_ns);
	if (!thread->hold.is_requested) /* it was answered, or refused */
		thread->hold.displaced = SF_DISPLACED_NOWHERE;
}
