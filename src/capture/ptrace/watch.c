/* SPDX-License-Identifier: Apache-2.0 */
/* Scans for the processes and threads of a target. */
#include "capture/ptrace/watch.h"

#include <unistd.h>

#include "capture/ptrace/watched.h"
#include "frozen/raw.h"
#include "os/cgroup.h"
#include "os/process.h"

#define SCAN_MIN_NS 10000000

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

bool sf_watch_scan(struct sf_watch *watch, uint64_t now_ns)
{
	uint64_t start_ns = sf_raw_thread_cpu_ns(), pause_ns;

	if (!watch->n_scans && !watch->options->child)
		watch->begun = sf_process_start_clock();
	if (watch->options->children && !watch->knows_children && now_ns >= watch->next_children_ns) {
		if (sf_watch_add_children(watch, now_ns))
			watch->next_scan_ns = 0;
		watch->knows_children = watch->keeps_ended;
	}
	if (now_ns < watch->next_scan_ns)
		return watch->processes.n > 0 || watch->options->all;
	watch->n_scans++;
	watch->has_kept = false;
	if (watch->options->all && !sf_watch_is_sampled(watch))
		sf_watch_add_all(watch);
	sf_watch_look_at_processes(watch, now_ns);
	sf_watch_list_threads(watch, now_ns);
	if (!watch->has_kept)
		sf_watch_lose_children(watch);
	sf_watch_renew_names(watch, now_ns);
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SF_WATCH_SCAN_SHARE;
	watch->next_scan_ns = now_ns + (pause_ns > SCAN_MIN_NS ? pause_ns : SCAN_MIN_NS);
	return watch->processes.n > 0 || watch->options->all;
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
	watch->has_kept = false;
}

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
