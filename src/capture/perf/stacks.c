/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds by the mappings of a process where the stacks of its threads end: how deep they are, and which holes they have, which
 * it fills.
 *
 * A thread's stack ends where its mapping ends. Of the stack that exec made, the arguments and the environment lie there,
 * so it ends where these begin. A mapping that goes on for longer than any copy is one for many stacks, such as those of
 * goroutines, and says nothing of their depth.
 */
#include "capture/perf/stacks.h"

#include "base/vec.h"
#include "capture/perf/perf.h"
#include "frozen/raw.h"
#include "os/pages.h"
#include "os/perf_events.h"
#include "os/process.h"
#include "os/task.h"

#define MAX_THREADS 256      /* of a process: a look takes some 15 us */
#define SHARE 100                /* looks take this part of a CPU ... */
#define CREDIT_NS 10000000       /* ... or so much at once: at the start of a program, when there is little to look at */
#define MAX_STACKS 256           /* of a look */

/* --- depth --- */

/* Where the threads of one process sleep. */
struct sleepers {
	SF_VEC(uint64_t) sps;
	uint64_t first_stack;    /* the end of the stack that exec made; 0: not known */
	uint64_t deepest;
};

static void find_stack_pointers(int32_t pid, struct sleepers *ret)
{
	struct sf_ids threads = { 0 };

	sf_process_threads(pid, &threads);
	for (size_t i = 0; i < threads.ids.n && i < MAX_THREADS; i++) {
		struct sf_task task;
		struct sf_task_look look;

		if (!sf_task_open(pid, threads.ids.items[i], &task))
			continue;
		if (sf_task_look(&task, &look) && look.placed)
			sf_vec_push(&ret->sps, look.sp);
		sf_task_close(&task);
	}
	sf_vec_deinit(&threads.ids);
}

static bool measure(const struct sf_mapping *mapping, void *arg)
{
	struct sleepers *sleepers = arg;
	const uint64_t first = sleepers->first_stack;
	const uint64_t end = first > mapping->start && first < mapping->end ? first : mapping->end;

	for (size_t i = 0; i < sleepers->sps.n; i++) {
		const uint64_t sp = sleepers->sps.items[i];

		if (sp >= mapping->start && sp < end && end - sp <= SF_PERF_MAX_STACK && end - sp > sleepers->deepest)
			sleepers->deepest = end - sp;
	}
	return true;
}

static uint64_t find_deepest(int32_t pid, struct sleepers *sleepers)
{
	struct sf_program program;

	if (sf_process_program(pid, &program))
		sleepers->first_stack = program.stack;
	if (sleepers->sps.n)
		sf_process_maps(sf_process_live_id(pid), measure, sleepers, NULL);
	return sleepers->deepest;
}

static uint64_t depth_of(int32_t pid)
{
	struct sleepers sleepers = { 0 };
	uint64_t depth;

	find_stack_pointers(pid, &sleepers);
	depth = find_deepest(pid, &sleepers);
	sf_vec_deinit(&sleepers.sps);
	return depth;
}

uint32_t sf_perf_depth_at(int32_t pid, const uint64_t *sps, size_t n)
{
	struct sleepers sleepers = { 0 };
	uint64_t depth;

	for (size_t i = 0; i < n; i++)
		sf_vec_push(&sleepers.sps, sps[i]);
	depth = find_deepest(pid, &sleepers);
	sf_vec_deinit(&sleepers.sps);
	return (uint32_t)depth;
}

uint32_t sf_perf_depth(const int32_t *pids, size_t n)
{
	uint64_t deepest = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t depth = depth_of(pids[i]);

		if (depth > deepest)
			deepest = depth;
	}
	return (uint32_t)deepest;
}

/* --- holes --- */

static bool is_known(const struct sf_thread_stack *stack)
{
	return stack->sp >= stack->start && stack->sp < stack->end;
}

bool sf_perf_holes_note(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_thread_stack *stack = &thread->stack;
	struct sf_regs regs;

	if (!record->stack_size || record->stack_size >= record->stack_room)
		return false;
	sf_perf_load_regs(record->regs, &regs);
	stack->sp = regs.r[sf_arch_host()->sp];
	stack->has_hole = is_known(stack) && stack->is_plain && stack->sp + record->stack_size < stack->end;
	if (is_known(stack) && !stack->has_hole)
		return false;
	perf->holes.pid = record->pid;
	return true;
}

/* Whether a look may help: its stack is not known, or has a hole. */
static bool is_wanted(const struct sf_thread *thread, int32_t pid)
{
	return thread->task.pid == pid && thread->stack.sp && (thread->stack.has_hole || !is_known(&thread->stack));
}

/* The end of the stack, and what the copy of the last record did not reach. */
static void fill(int32_t tid, const struct sf_thread_stack *stack)
{
	const uint64_t last = stack->end - stack->start > SF_PERF_MAX_STACK ? stack->end - SF_PERF_MAX_STACK : stack->start;

	sf_pages_fill(tid, last, stack->end);
	if (stack->sp < last)
		sf_pages_fill(tid, stack->sp, stack->sp + SF_PERF_MAX_STACK < last ? stack->sp + SF_PERF_MAX_STACK : last);
}

static void take(struct sf_thread *thread, const struct sf_pages_stack *found)
{
	struct sf_thread_stack *stack = &thread->stack;

	stack->start = found->start;
	stack->end = found->end;
	stack->is_plain = found->is_plain;
	if (stack->is_plain)
		fill(thread->task.tid, stack);
	stack->has_hole = false;
}

static void look(struct sf_perf *perf, int32_t pid)
{
	const struct sf_watch *watch = &perf->base.watch;
	struct sf_pages_stack stacks[MAX_STACKS];
	struct sf_thread *threads[MAX_STACKS];
	size_t n = 0;

	for (size_t i = 0; i < watch->threads.n && n < MAX_STACKS; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!is_wanted(thread, pid))
			continue;
		threads[n] = thread;
		stacks[n++].sp = thread->stack.sp;
	}
	if (n)
		sf_pages_find_stacks(threads[0]->task.tid, stacks, n);
	for (size_t i = 0; i < n; i++)
		take(threads[i], &stacks[i]);
}

void sf_perf_holes_fill(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_holes *holes = &perf->holes;
	const uint64_t start_ns = sf_raw_thread_cpu_ns();

	if (!holes->pid)
		return;
	holes->credit_ns += (int64_t)((now_ns - holes->paid_ns) / SHARE);
	if (holes->credit_ns > CREDIT_NS)
		holes->credit_ns = CREDIT_NS;
	holes->paid_ns = now_ns;
	if (holes->credit_ns <= 0)
		return;
	look(perf, holes->pid);
	holes->pid = 0;
	holes->credit_ns -= (int64_t)(sf_raw_thread_cpu_ns() - start_ns);
}
