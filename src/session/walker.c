/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the stills of a session with the code maps of their processes. */
#include "session/walker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/process.h"
#include "os/task.h"
#include "session/mapped_code.h"
#include "unwind/unwind.h"

#define MADE_CODE ((uint64_t)128 << 10) /* bytes: a program that makes so much has a compiler in it, and not some stubs only */

/* Gives each image its unwind table. */
static const struct sf_image_loader loader = {
	.load = sf_image_load_table, .unload = sf_image_unload_table,
};

bool sf_walker_init(struct sf_walker *walker, uint32_t max_depth, struct sf_error *err)
{
	*walker = (struct sf_walker){
		.images = sf_images_create(&loader),
		.pids = sf_intern_create(),
		.trace = {
			.frames = calloc(max_depth, sizeof(struct sf_frame)),
			.capacity = max_depth,
		},
		.regs = calloc(max_depth, sizeof(struct sf_tail_regs)),
	};
	if (walker->images && walker->pids && walker->trace.frames && walker->regs)
		return true;
	sf_walker_deinit(walker);
	return sf_fail_memory(err);
}

void sf_walker_deinit(struct sf_walker *walker)
{
	for (size_t i = 0; i < walker->processes.n; i++) {
		sf_process_deinit(&walker->processes.items[i].process);
		sf_process_runtimes_deinit(&walker->processes.items[i].runtimes);
	}
	sf_vec_deinit(&walker->processes);
	sf_vec_deinit(&walker->places);
	sf_vec_deinit(&walker->free_places);
	sf_intern_destroy(walker->pids);
	sf_images_destroy(walker->images);
	free(walker->trace.frames);
	free(walker->regs);
	*walker = (struct sf_walker){ 0 };
}

static void look_for_runtimes(struct sf_walker *walker, struct sf_walked *walked)
{
	walked->runtimes.all.completes = walker->completes;
	sf_process_runtimes_look(&walked->runtimes, &walked->process, walker->images);
}

/* A place + 1 in processes, whose content is zero; 0: no memory. */
static uint32_t take_place(struct sf_walker *walker)
{
	if (walker->free_places.n)
		return walker->free_places.items[--walker->free_places.n];
	return sf_vec_push(&walker->processes, (struct sf_walked){ 0 }) ? (uint32_t)walker->processes.n : 0;
}

/* NULL: no memory. */
static struct sf_walked *find_process(struct sf_walker *walker, int32_t pid)
{
	uint32_t number = sf_intern_add(walker->pids, &pid, sizeof(pid), NULL);

	if (!number)
		return NULL;
	while (walker->places.n < number) {
		if (!sf_vec_push(&walker->places, 0))
			return NULL;
	}
	if (!walker->places.items[number - 1]) {
		walker->places.items[number - 1] = take_place(walker);
		if (!walker->places.items[number - 1])
			return NULL;
		sf_process_init(&walker->processes.items[walker->places.items[number - 1] - 1].process, pid);
	}
	return &walker->processes.items[walker->places.items[number - 1] - 1];
}

static struct sf_walked *find_known(const struct sf_walker *walker, int32_t pid)
{
	const uint32_t number = sf_intern_find(walker->pids, &pid, sizeof(pid));
	const uint32_t place = number && number <= walker->places.n ? walker->places.items[number - 1] : 0;

	return place ? &walker->processes.items[place - 1] : NULL;
}

void sf_walker_end(struct sf_walker *walker, int32_t pid)
{
	struct sf_walked *walked = find_known(walker, pid);
	uint32_t number;

	if (!walked || !sf_vec_push(&walker->free_places, (uint32_t)(walked - walker->processes.items) + 1))
		return;
	number = sf_intern_find(walker->pids, &pid, sizeof(pid));
	walker->places.items[number - 1] = 0;
	sf_process_deinit(&walked->process);
	sf_process_runtimes_deinit(&walked->runtimes);
	*walked = (struct sf_walked){ 0 };
}

bool sf_walker_begin(struct sf_walker *walker, int32_t pid, struct sf_error *err)
{
	struct sf_walked *walked = find_process(walker, pid);

	if (!walked)
		return sf_fail_memory(err);
	if (!walked->begun) {
		walked->begun = true;
		return true;
	}
	sf_process_runtimes_deinit(&walked->runtimes);
	sf_process_restart(&walked->process);
	return true;
}

bool sf_walker_add_mapping(struct sf_walker *walker, int32_t pid, const struct sf_mapping *mapping, struct sf_error *err)
{
	struct sf_walked *walked = find_process(walker, pid);

	walker->has_records = true;
	return (walked && sf_process_add_mapping(&walked->process, walker->images, mapping)) || sf_fail_memory(err);
}

bool sf_walker_know(struct sf_walker *walker, int32_t pid, struct sf_error *err)
{
	return find_process(walker, pid) || sf_fail_memory(err);
}

bool sf_walker_fork(struct sf_walker *walker, int32_t pid, int32_t parent, struct sf_error *err)
{
	struct sf_walked *walked = find_process(walker, pid), *known = find_known(walker, parent);
	struct sf_process *from;

	if (!walked)
		return sf_fail_memory(err);
	sf_process_set_parent(&walked->process, parent, known ? &known->process : NULL);
	if (!known || sf_process_map_is_read(&walked->process))
		return true;
	from = &known->process;
	if (!from->map || from->is_outdated)
		sf_process_refresh_stale(from, walker->images);
	return sf_process_fork(&walked->process, from) || sf_fail_memory(err);
}

bool sf_walker_has_code(struct sf_walker *walker, int32_t pid)
{
	const struct sf_walked *walked = find_process(walker, pid);

	return walked && walked->process.map && walked->process.map->n_regions;
}

bool sf_walker_prepare(struct sf_walker *walker, int32_t pid, struct sf_error *err)
{
	struct sf_walked *walked = find_process(walker, pid);

	if (!walked)
		return sf_fail_memory(err);
	if (!sf_process_refresh(&walked->process, walker->images, err))
		return false;
	look_for_runtimes(walker, walked);
	return true;
}

/*
 * Whether a runtime's data about the thread fits the stack. The data is read now, and the stack was copied
 * earlier: the two fit only if the thread has slept in between.
 */
static bool slept_on(const struct sf_still *still)
{
	return !(still->flags & SF_STILL_UNHELD) ||
	       (still->switches && still->switches == sf_task_switches(still->pid, still->tid));
}

/* Takes away the thread's handles in runtimes whose data must be of the moment of its stack. False: there was none. */
static bool forget_handles(const struct sf_process_runtimes *runtimes, struct sf_still *still)
{
	bool any = false;

	for (size_t i = 0; i < SF_N_RUNTIMES; i++) {
		const struct sf_runtime *runtime = runtimes->all.attached[i];

		if (!runtime || runtime->ops->resumes_by_stack || !still->handles[runtime->slot])
			continue;
		still->handles[runtime->slot] = 0;
		any = true;
	}
	return any;
}

/*
 * Again, with the thread's handles in its runtimes. That costs some reads, and is rarely needed. Of a process that has ended
 * the memory that is left is older than the stack: there the runtimes' data about threads is of another moment.
 */
static void walk_as_known(struct sf_walker *walker, struct sf_process_runtimes *runtimes,
			  struct sf_still *still)
{
	walker->lacks_registers = walker->trace.end == SF_END_REGISTER;
	if (sf_process_is_over(still->pid) || !sf_process_runtimes_handles(runtimes, still->pid, still->tid, still->handles))
		return;
	sf_walk(still, &walker->trace);
	if (!slept_on(still) && forget_handles(runtimes, still))
		sf_walk(still, &walker->trace);
}

/* The image that the kernel's frames are in. */
static struct sf_image *kernel_image(struct sf_walker *walker)
{
	const struct sf_image_seen seen = { .path = "[kernel]" };

	if (walker->kernel)
		return walker->kernel;
	walker->kernel = sf_images_add(walker->images, 0, &seen);
	if (walker->kernel) {
		walker->kernel->is_kernel = true;
		walker->kernel->note[0] = 0;
	}
	return walker->kernel;
}

/*
 * Makes room for `wanted` frames in front of frame `at`. Where the trace has no room for all, its outermost frames give
 * way. Returns for how many there is room.
 */
static uint32_t make_room(struct sf_trace *trace, uint32_t at, uint32_t wanted)
{
	const uint32_t n = wanted < trace->capacity - at ? wanted : trace->capacity - at;

	if (trace->n_frames > trace->capacity - n) {
		trace->n_frames = trace->capacity - n;
		trace->end = SF_END_DEPTH;
	}
	memmove(trace->frames + at + n, trace->frames + at, (trace->n_frames - at) * sizeof(*trace->frames));
	trace->n_frames += n;
	return n;
}

/* Methods that await a function stand behind it as if they had called it. */
static void add_awaiters(struct sf_walker *walker, const struct sf_still *still)
{
	struct sf_process_runtimes *runtimes = sf_walker_runtimes(walker, still->pid);
	struct sf_frame frames[SF_MAX_AWAITERS];
	uint32_t at = 0, n = runtimes ? sf_process_runtimes_awaiters(runtimes, still, &walker->trace, frames, &at) : 0;

	if (!n)
		return;
	n = make_room(&walker->trace, at, n);
	memcpy(walker->trace.frames + at, frames, n * sizeof(frames[0]));
}

/* Puts the kernel's frames on top. */
static void add_kernel_frames(struct sf_walker *walker, const struct sf_still *still)
{
	struct sf_trace *trace = &walker->trace;
	const struct sf_image *image = still->n_kernel ? kernel_image(walker) : NULL;
	const uint32_t n = image ? make_room(trace, 0, still->n_kernel) : 0;

	for (uint32_t i = 0; i < n; i++)
		trace->frames[i] = (struct sf_frame){
			.pc = still->kernel[i], .address = still->kernel[i], .image = image->number,
			.kind = SF_KIND_KERNEL, .via = SF_VIA_KERNEL, .flags = i == 0 ? SF_FRAME_EXACT : 0,
		};
}

/* A walk met code that is in no region. True: the map is another one now. */
static bool find_new_code(struct sf_walker *walker, struct sf_walked *walked)
{
	bool changed = sf_process_refresh_stale(&walked->process, walker->images);

	if (changed)
		look_for_runtimes(walker, walked);
	changed |= sf_process_runtimes_refresh(&walked->runtimes, &walked->process, true);
	return changed;
}

static void walk_with_tail(struct sf_walker *walker, const struct sf_still *still, struct sf_tail *tail)
{
	struct sf_tail_walk walk = { .tail = tail, .regs = walker->regs, .capacity = walker->trace.capacity };

	if (tail)
		sf_walk_with_tail(still, &walk, &walker->trace);
	else
		sf_walk(still, &walker->trace);
}

static enum sf_end walk_user(struct sf_walker *walker, struct sf_still *still, struct sf_tail *tail)
{
	struct sf_walked *walked = find_process(walker, still->pid);
	struct sf_process *process;

	walker->trace.n_frames = 0;
	walker->trace.end = SF_END_EMPTY;
	walker->lacks_registers = false;
	if (!walked || !still->regs.pc)
		return SF_END_EMPTY;
	process = &walked->process;
	sf_process_refresh_due(process, walker->images, walker->has_records);
	if (!process->map)
		return SF_END_EMPTY;
	look_for_runtimes(walker, walked);
	sf_process_runtimes_renew(&walked->runtimes);
	sf_process_runtimes_refresh(&walked->runtimes, process, false);
	still->arch = process->arch;
	still->map = process->map;
	memset(still->handles, 0, sizeof(still->handles));
	walk_with_tail(walker, still, tail);
	if (sf_trace_may_be_stale(&walker->trace) && find_new_code(walker, walked)) {
		still->map = process->map;
		walk_with_tail(walker, still, tail);
	}
	if (sf_runtimes_any(&walked->runtimes.all) && (walker->trace.end != SF_END_ROOT || walker->trace.by_zero) &&
	    walker->trace.end != SF_END_COPY && walker->trace.end != SF_END_DEPTH)
		walk_as_known(walker, &walked->runtimes, still);
	return walker->trace.end;
}

/*
 * There are no frames but the kernel's: the program whose registers these are, if there are any, is gone, or the thread stays in the
 * kernel, where its registers of user mode were read and are 0.
 */
static bool has_no_user(const struct sf_still *still, const struct sf_trace *trace)
{
	const bool is_unknown = trace->end == SF_END_NO_CODE && trace->n_frames == 1;

	if (!still->regs.pc)
		return still->n_kernel || (still->flags & SF_STILL_COPY && !still->regs.r[sf_arch_host()->sp]);
	return still->n_kernel && still->flags & SF_STILL_IN_EXEC && is_unknown;
}

enum sf_end sf_walker_walk(struct sf_walker *walker, struct sf_still *still, struct sf_tail *tail)
{
	struct sf_mapped_code code;

	sf_mapped_code_begin(&code, still, walker->images);
	walk_user(walker, still, tail);
	sf_mapped_code_end(&code, still);
	if (has_no_user(still, &walker->trace)) {
		walker->trace.n_frames = 0;
		walker->trace.end = SF_END_ROOT;
	}
	if (walker->awaiters)
		add_awaiters(walker, still);
	add_kernel_frames(walker, still);
	return walker->trace.end;
}

struct sf_process_runtimes *sf_walker_runtimes(struct sf_walker *walker, int32_t pid)
{
	struct sf_walked *walked = find_process(walker, pid);

	return walked && sf_runtimes_any(&walked->runtimes.all) ? &walked->runtimes : NULL;
}

const char *sf_walker_news(struct sf_walker *walker, int32_t pid)
{
	struct sf_walked *walked = find_process(walker, pid);

	return walked ? sf_runtimes_news(&walked->runtimes.all) : NULL;
}

/* Code in no file, of a program with no runtime that names it: whether the program does, by a perf map. */
static void examine_made_code(struct sf_images *images, const struct sf_code_map *map, const struct sf_runtime_findings *findings)
{
	static const char text[] = "code that it makes while it runs has names";
	const struct sf_image *perf_map = NULL;
	uint64_t nameless = 0;

	for (size_t i = 0; i < map->n_regions; i++) {
		const struct sf_region *region = &map->regions[i];

		if (!region->image)
			nameless += region->end - region->start;
		else if (sf_images_get(images, region->image)->is_perf_map)
			perf_map = sf_images_get(images, region->image);
	}
	if (perf_map)
		findings->add(findings, true, text, "");
	else if (nameless >= MADE_CODE)
		findings->add(findings, false, text, "It writes no perf map. Options that make it write one: " SF_PERF_MAP_HINT ".");
}

void sf_walker_examine(struct sf_walker *walker, int32_t pid, const struct sf_runtime_findings *findings)
{
	struct sf_walked *walked = find_process(walker, pid);

	if (!walked)
		return;
	sf_runtimes_examine(&walked->runtimes.all, walker->images, findings);
	if (!sf_runtimes_any(&walked->runtimes.all) && walked->process.map)
		examine_made_code(walker->images, walked->process.map, findings);
}
