/* SPDX-License-Identifier: Apache-2.0 */
/* Scans for the processes and threads of a target: searches for new ones, and looks at those that are known. */
#include "capture/ptrace/watch.h"

#include <unistd.h>

#include "capture/ptrace/watched.h"
#include "frozen/raw.h"
#include "os/cgroup.h"
#include "os/process.h"

#define SCAN_SHARE 100          /* a scan, or a search for children, is followed by this many times its CPU time of pause ... */
#define SCAN_MIN_NS 10000000    /* ... and a scan by this at the least */
#define CHILDREN_MIN_NS 2000000 /* ... and a search by this: short-lived processes are what `make` and shells are made of */

bool sf_watch_open(struct sf_watch *watch, const struct sf_capture_options *options,
		   struct sf_error *err)
{
	watch->options = options;
	if (options->threads) {
		if (regcomp(&watch->names, options->threads, REG_EXTENDED | REG_NOSUB) != 0)
			return sf_fail(err, SF_E_INPUT, "'%.100s' is not a regular expression",
				       options->threads);
		watch->has_names = true;
	}
	if (options->cgroup) {
		const int fd = sf_cgroup_open(options->cgroup, err);

		if (fd < 0)
			return false;
		watch->cgroup = fd;
	}
	for (size_t i = 0; i < sf_capture_n_pids(options); i++) {
		if (!sf_watch_add_chosen(watch, sf_capture_pid(options, i)))
			return sf_fail_memory(err);
	}
	return true;
}

void sf_watch_close(struct sf_watch *watch)
{
	if (watch->has_names)
		regfree(&watch->names);
	if (watch->cgroup)
		close(watch->cgroup);
	sf_vec_deinit(&watch->processes);
	sf_vec_deinit(&watch->threads);
	sf_vec_deinit(&watch->ids.ids);
	sf_vec_deinit(&watch->unreaped.ids);
}

/* --- the search for processes: those of the machine or of a control group, and children --- */

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

/* Adds the processes of the machine or of the control group that are new, but those of the kernel: they come by their samples. */
static void add_all(struct sf_watch *watch)
{
	struct sf_ids ids = { 0 };

	if (watch->cgroup)
		sf_cgroup_processes(watch->cgroup, &ids);
	else
		sf_process_all(&ids);
	for (size_t i = 0; i < ids.ids.n; i++) {
		const int32_t pid = ids.ids.items[i];

		if (sf_watch_find_process(watch, pid) || sf_process_is_kernel(pid) || is_over(watch, pid))
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

/* Adds the descendants that are new. True when there are any. */
static bool add_children(struct sf_watch *watch, uint64_t now_ns)
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
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SCAN_SHARE;
	watch->next_children_ns = now_ns + (pause_ns > CHILDREN_MIN_NS ? pause_ns : CHILDREN_MIN_NS);
	return watch->processes.n > n_before;
}

/* --- the scan --- */

bool sf_watch_scan(struct sf_watch *watch, uint64_t now_ns)
{
	uint64_t start_ns = sf_raw_thread_cpu_ns(), pause_ns;

	if (!watch->n_scans && !watch->options->child)
		watch->begun = sf_process_start_clock();
	if (watch->options->children && !watch->knows_children && now_ns >= watch->next_children_ns) {
		if (add_children(watch, now_ns))
			watch->next_scan_ns = 0;
		watch->knows_children = watch->keeps_ended;
	}
	if (now_ns < watch->next_scan_ns)
		return watch->processes.n > 0 || watch->options->all;
	watch->n_scans++;
	watch->has_kept = false;
	if (watch->options->all && !sf_watch_is_sampled(watch))
		add_all(watch);
	sf_watch_look_at_processes(watch, now_ns);
	sf_watch_list_threads(watch, now_ns);
	if (!watch->has_kept)
		sf_watch_lose_children(watch);
	sf_watch_renew_names(watch, now_ns);
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SCAN_SHARE;
	watch->next_scan_ns = now_ns + (pause_ns > SCAN_MIN_NS ? pause_ns : SCAN_MIN_NS);
	return watch->processes.n > 0 || watch->options->all;
}

/* --- ids that are used again --- */

/* A first thread may have exited long before its process, whose id is free after that only. */
static bool is_replaced(const struct sf_watched_process *process)
{
	return process->exited_ns && process->forked_ns > process->exited_ns;
}

void sf_watch_first_exits(struct sf_watch *watch, int32_t pid, uint64_t exit_ns)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	if (process && (!process->exited_ns || exit_ns < process->exited_ns))
		process->exited_ns = exit_ns;
	watch->any_replaced |= process && is_replaced(process);
}

void sf_watch_id_begins(struct sf_watch *watch, int32_t pid, uint64_t fork_ns)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	if (process && process->forked_ns < fork_ns)
		process->forked_ns = fork_ns;
	watch->any_replaced |= process && is_replaced(process);
}

bool sf_watch_is_anothers(const struct sf_watch *watch, int32_t pid, uint64_t time_ns)
{
	const struct sf_watched_process *process = watch->any_replaced ? sf_watch_find_process(watch, pid) : NULL;

	return process && is_replaced(process) && time_ns >= process->forked_ns;
}

void sf_watch_end_kept(struct sf_watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->processes.n; i-- > 0;) {
		if (watch->processes.items[i].ended)
			sf_watch_end_process(watch, i, now_ns);
	}
	for (size_t i = watch->threads.n; i-- > 0;) {
		if (watch->threads.items[i]->ended)
			sf_watch_end_thread(watch, i, now_ns);
	}
	watch->has_kept = watch->any_replaced = false;
	for (size_t i = 0; i < watch->processes.n; i++)
		watch->any_replaced |= is_replaced(&watch->processes.items[i]);
}

/* --- the CPU clocks of processes --- */

uint64_t sf_watch_cpu_ns(const struct sf_watch *watch)
{
	uint64_t all_ns = 0, cpu_ns;

	for (size_t i = 0; i < watch->processes.n; i++) {
		if (sf_process_cpu(watch->processes.items[i].pid, &cpu_ns))
			all_ns += cpu_ns;
	}
	return all_ns;
}

/* A process's clock is read after its threads', so it only ever shows more. */
static int64_t count_others(struct sf_watch *watch)
{
	int64_t others_ns;

	watch->cpu_ns = sf_watch_cpu_ns(watch);
	others_ns = (int64_t)watch->cpu_ns;
	for (size_t i = 0; i < watch->threads.n; i++)
		others_ns -= (int64_t)watch->threads.items[i]->run.cpu_ns;
	return others_ns;
}

uint64_t sf_watch_others_ran(struct sf_watch *watch)
{
	const int64_t others_ns = count_others(watch);

	if (others_ns < watch->others_ns)
		watch->others_ns = others_ns;
	return (uint64_t)(others_ns - watch->others_ns);
}

void sf_watch_looked_at_all(struct sf_watch *watch)
{
	watch->others_ns = count_others(watch);
}

void sf_watch_end(struct sf_watch *watch, uint64_t now_ns)
{
	watch->over = true;
	while (watch->processes.n)
		sf_watch_end_process(watch, watch->processes.n - 1, now_ns);
	sf_watch_lose_children(watch);
	while (watch->threads.n)
		sf_watch_end_thread(watch, watch->threads.n - 1, now_ns);
}
