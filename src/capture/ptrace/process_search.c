/* SPDX-License-Identifier: Apache-2.0 */
/* The search for processes that are to be watched: those of the machine or of a control group, and children. */
#include "capture/ptrace/watched.h"

#include "frozen/raw.h"
#include "os/cgroup.h"

#define CHILDREN_MIN_NS 2000000 /* between two searches: short-lived processes are what `make` and shells are made of */

static bool add_process(struct sf_watch *watch, int32_t pid)
{
	const int32_t parent = sf_process_parent(pid);
	const struct sf_watched_process process = { .pid = pid, .parent = parent, .origin = parent };

	return sf_vec_push(&watch->processes, process);
}

static bool is_unreaped(const struct sf_watch *watch, int32_t pid)
{
	for (size_t i = 0; i < watch->unreaped.ids.n; i++) {
		if (watch->unreaped.ids.items[i] == pid)
			return true;
	}
	return false;
}

/*
 * Whether a process has ended, and its end is counted or was before the recording: until its parent waits for it, a search
 * finds it. An engine that has records of ends has counted all.
 */
static bool is_over(const struct sf_watch *watch, int32_t pid)
{
	const bool was_there = !watch->n_scans && !watch->options->child;
	struct sf_program program;

	return (was_there || watch->keeps_ended || is_unreaped(watch, pid)) && !sf_process_program(pid, &program);
}

void sf_watch_add_all(struct sf_watch *watch)
{
	struct sf_ids ids = { 0 };

	if (watch->cgroup)
		sf_cgroup_processes(watch->cgroup, &ids);
	else
		sf_process_all(&ids);
	for (size_t i = 0; i < ids.ids.n; i++) {
		const int32_t pid = ids.ids.items[i];

		if (sf_watch_find_process(watch, pid) || sf_process_is_kernel(pid) || is_over(watch, pid)) /* the kernel's come by their samples */
			continue;
		if (!add_process(watch, pid))
			break;
	}
	sf_vec_deinit(&ids.ids);
}

/* Adds those of the processes from this index on that are not over. */
static void add_found(struct sf_watch *watch, const struct sf_ids *ids, size_t first)
{
	struct sf_ids unreaped = { 0 };
	bool fine = true;

	for (size_t i = first; i < ids->ids.n && fine; i++) {
		const int32_t pid = ids->ids.items[i];

		fine = is_over(watch, pid) ? sf_vec_push(&unreaped.ids, pid) : add_process(watch, pid);
	}
	sf_vec_deinit(&watch->unreaped.ids);
	watch->unreaped = unreaped;
}

bool sf_watch_add_children(struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_before = watch->processes.n;
	uint64_t start_ns = sf_raw_thread_cpu_ns(), pause_ns;
	struct sf_ids ids = { 0 };

	for (size_t i = 0; i < watch->processes.n; i++) {
		if (!sf_vec_push(&ids.ids, watch->processes.items[i].pid))
			break;
	}
	if (ids.ids.n == watch->processes.n)
		sf_process_descendants(&ids);
	add_found(watch, &ids, n_before);
	sf_vec_deinit(&ids.ids);
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SF_WATCH_SCAN_SHARE;
	watch->next_children_ns = now_ns + (pause_ns > CHILDREN_MIN_NS ? pause_ns : CHILDREN_MIN_NS);
	return watch->processes.n > n_before;
}
