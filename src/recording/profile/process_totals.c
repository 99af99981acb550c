/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each program's processes: the sums of their threads. Processes with the same name are one row. */
#include <stdlib.h>

#include "recording/profile/aggregate.h"

/* By name, and then by process: a row is a run of these. */
static int by_process(const void *left, const void *right, void *arg)
{
	const struct sf_profile *profile = arg;
	const struct sf_profile_thread *a = &profile->threads[*(const uint32_t *)left];
	const struct sf_profile_thread *b = &profile->threads[*(const uint32_t *)right];

	if (a->process_name != b->process_name)
		return a->process_name > b->process_name ? 1 : -1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int longest_first(const void *left, const void *right)
{
	const struct sf_process_total *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void add_thread(struct sf_process_total *total, const struct sf_profile_thread *thread, const struct sf_share *share)
{
	total->n_processes += total->pid != thread->pid;
	total->pid = thread->pid;
	total->n_threads++;
	total->ns += share->ns;
	total->cpu_ns += share->cpu_ns;
	total->wall_ns += share->wall_ns;
	total->samples += share->samples;
	total->cpu_counted_ns += thread->cpu_counted_ns;
}

/* `order`: the threads by process. */
static size_t add_up(const struct sf_profile *profile, const struct sf_share *shares, const uint32_t *order,
		     struct sf_process_total *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < profile->n_threads; i++) {
		const struct sf_profile_thread *thread = &profile->threads[order[i]];

		if (!thread->tid) /* stands for time of no known thread */
			continue;
		if (n == 0 || ret[n - 1].name != thread->process_name)
			ret[n++].name = thread->process_name;
		add_thread(&ret[n - 1], thread, &shares[order[i]]);
	}
	return n;
}

/* Leaves out processes without time and samples. Returns how many stay. */
static size_t drop_empty(struct sf_process_total *totals, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (totals[i].ns || totals[i].samples)
			totals[kept++] = totals[i];
	}
	return kept;
}

bool sf_aggregate_processes(const struct sf_profile *profile, struct sf_aggregate *ret, struct sf_error *err)
{
	uint32_t *order = calloc((size_t)profile->n_threads + 1, sizeof(*order));

	ret->processes = calloc((size_t)profile->n_threads + 1, sizeof(*ret->processes));
	if (!order || !ret->processes) {
		free(order);
		return sf_fail_memory(err);
	}
	for (uint32_t i = 0; i < profile->n_threads; i++)
		order[i] = i;
	qsort_r(order, profile->n_threads, sizeof(*order), by_process, (void *)(uintptr_t)profile);
	ret->n_processes = drop_empty(ret->processes, add_up(profile, ret->threads.items, order, ret->processes));
	qsort(ret->processes, ret->n_processes, sizeof(*ret->processes), longest_first);
	free(order);
	return true;
}
