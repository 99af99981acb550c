/* SPDX-License-Identifier: Apache-2.0 */
#include "session/walker.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/syscalls.h"
#include "session/loader.h"

/* Code that is unmapped and replaced at the same place is noticed after this time. */
#define MAPS_AGE_NS 1000000000

bool sf_walker_init(struct sf_walker *walker, uint32_t max_depth, struct sf_error *err)
{
	*walker = (struct sf_walker){
		.images = sf_images_create(&sf_session_loader),
		.pids = sf_intern_create(),
		.trace = {
			.frames = calloc(max_depth, sizeof(struct sf_frame)),
			.capacity = max_depth,
		},
	};
	if (walker->images && walker->pids && walker->trace.frames)
		return true;
	sf_walker_deinit(walker);
	return sf_fail_memory(err);
}

void sf_walker_deinit(struct sf_walker *walker)
{
	for (size_t i = 0; i < walker->processes.n; i++)
		sf_process_deinit(&walker->processes.items[i]);
	sf_vec_deinit(&walker->processes);
	sf_intern_destroy(walker->pids);
	sf_images_destroy(walker->images);
	free(walker->trace.frames);
	*walker = (struct sf_walker){ 0 };
}

static struct sf_process *find_process(struct sf_walker *walker, int32_t pid)
{
	uint32_t number = sf_intern_add(walker->pids, &pid, sizeof(pid), NULL);
	struct sf_process process;

	if (!number)
		return NULL;
	if (number <= walker->processes.n)
		return &walker->processes.items[number - 1];
	sf_process_init(&process, pid);
	if (!sf_vec_push(&walker->processes, process))
		return NULL;
	return &walker->processes.items[number - 1];
}

bool sf_walker_forget(struct sf_walker *walker, int32_t pid, struct sf_error *err)
{
	struct sf_process *process = find_process(walker, pid);

	if (!process)
		return sf_fail_memory(err);
	sf_process_deinit(process);
	sf_process_init(process, pid);
	return true;
}

bool sf_walker_prepare(struct sf_walker *walker, int32_t pid, struct sf_error *err)
{
	struct sf_process *process = find_process(walker, pid);

	return process ? sf_process_refresh(process, walker->images, err) : sf_fail_memory(err);
}

/* Ends that another look at the maps may change. */
static bool may_be_stale(const struct sf_trace *trace)
{
	return trace->end == SF_END_NO_CODE || trace->end == SF_END_NO_RULE ||
	       trace->end == SF_END_STUCK ||
	       (trace->n_frames && trace->frames[trace->n_frames - 1].image == 0);
}

enum sf_end sf_walker_walk(struct sf_walker *walker, struct sf_still *still)
{
	struct sf_process *process = find_process(walker, still->pid);

	walker->trace.n_frames = 0;
	walker->trace.end = SF_END_EMPTY;
	if (!process || !still->regs.pc)
		return SF_END_EMPTY;
	if (!process->map || sf_now_ns() - process->refreshed_ns > MAPS_AGE_NS)
		sf_process_refresh_stale(process, walker->images);
	if (!process->map)
		return SF_END_EMPTY;
	still->arch = process->arch;
	still->map = process->map;
	if (sf_walk(still, &walker->trace) != SF_END_ROOT && may_be_stale(&walker->trace) &&
	    sf_process_refresh_stale(process, walker->images)) {
		still->map = process->map;
		sf_walk(still, &walker->trace);
	}
	return walker->trace.end;
}

const char *sf_wait_label(const struct sf_still *still, char *ret, size_t size)
{
	char name[64];

	if (still->state == SF_STATE_STOPPED)
		return "[stopped]";
	if (still->state != SF_STATE_BLOCKED || still->syscall == SF_SYSCALL_NONE)
		return NULL;
	snprintf(ret, size, "[%s]", sf_syscall_name(still->syscall, name, sizeof(name)));
	return ret;
}
