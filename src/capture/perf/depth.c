/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates how deep the stacks of a process are, by where its threads sleep and the memory that they sleep in.
 *
 * A thread's stack ends where its mapping ends. Of the stack that exec made, the arguments and the environment lie there,
 * so it ends where these begin. A mapping that goes on for longer than any copy is one for many stacks, such as those of
 * goroutines, and says nothing.
 */
#include "capture/perf/depth.h"

#include "base/vec.h"
#include "os/perf_events.h"
#include "os/process.h"
#include "os/task.h"

#define MAX_THREADS 256      /* of a process: a look takes some 15 us */

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
