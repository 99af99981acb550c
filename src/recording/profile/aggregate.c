/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sums that need no stacks, in one pass over the samples. call_tree.c computes those that need stacks. */
#include "recording/profile/aggregate.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/histogram.h"
#include "base/search.h"

SF_DEFINE_CLEANUP(struct sf_aggregate *, sf_aggregate_destroy)

void sf_aggregate_destroy(struct sf_aggregate *aggregate)
{
	if (!aggregate)
		return;
	free(aggregate->functions);
	sf_call_tree_deinit(&aggregate->tree);
	free(aggregate->processes);
	free(aggregate->threads.items);
	free(aggregate->states.items);
	free(aggregate->waits.items);
	free(aggregate->labels.items);
	free(aggregate);
}

const char *sf_aggregate_name(const struct sf_profile *profile, uint32_t function)
{
	const char *name = function && function < profile->n_functions
				   ? sf_profile_string(profile, profile->functions[function].name)
				   : "[no stack]";

	return *name ? name : "[no name]";
}

static void add_share(struct sf_share *share, uint32_t key, const struct sf_profile_sample *sample,
		      enum sf_clock clock)
{
	share->key = key;
	share->ns += sf_profile_weight(sample, clock);
	share->cpu_ns += sample->cpu_ns;
	share->wall_ns += sample->wall_ns;
	share->samples++;
	share->ticks += sample->ticks;
}

static int compare(uint64_t a, uint64_t b)
{
	return sf_order(b, a);
}

static int by_clock(const void *left, const void *right)
{
	const struct sf_share *a = left, *b = right;

	if (a->ns != b->ns)
		return compare(a->ns, b->ns);
	if (a->ticks != b->ticks)
		return compare(a->ticks, b->ticks);
	return compare(b->key, a->key);
}

/* For states and waits: by CPU time all waits are equal. */
static int by_elapsed_time(const void *left, const void *right)
{
	const struct sf_share *a = left, *b = right;

	return a->wall_ns != b->wall_ns ? compare(a->wall_ns, b->wall_ns) : by_clock(left, right);
}

static void sort_shares(struct sf_shares *shares, int (*order)(const void *left, const void *right))
{
	size_t kept = 0;

	for (size_t i = 0; i < shares->n; i++) {
		if (shares->items[i].samples || shares->items[i].ns)
			shares->items[kept++] = shares->items[i];
	}
	shares->n = kept;
	qsort(shares->items, kept, sizeof(*shares->items), order);
}

static bool make_shares(struct sf_shares *shares, size_t n)
{
	shares->items = calloc(n + 1, sizeof(*shares->items));
	shares->n = n;
	return shares->items != NULL;
}

/* The function of the sample's innermost frame, if the thread waits there. */
static uint32_t wait_of(const struct sf_profile *profile, const struct sf_profile_sample *sample)
{
	uint32_t function = profile->frames[profile->nodes[sample->node].frame].function;

	return profile->functions[function].kind == SF_KIND_WAIT ? function : 0;
}

static void add_state(struct sf_aggregate *aggregate, const struct sf_profile_sample *sample)
{
	struct sf_profile_sample on_cpu, waiting;

	if (sf_profile_split_wait(sample, &on_cpu, &waiting))
		add_share(&aggregate->states.items[waiting.state], waiting.state, &waiting,
			  aggregate->clock);
	add_share(&aggregate->states.items[on_cpu.state], on_cpu.state, &on_cpu, aggregate->clock);
}

static void add_managed(struct sf_aggregate *aggregate, const struct sf_profile *profile,
			const struct sf_profile_sample *sample)
{
	const struct sf_profile_frame *frame = &profile->frames[profile->nodes[sample->node].frame];
	const uint64_t weight = sf_profile_weight(sample, aggregate->clock);

	if (!sample->node)
		return;
	if (frame->approximate || sf_kind_is_managed(profile->functions[frame->function].kind))
		aggregate->managed_ns += weight;
	if (frame->approximate)
		aggregate->approximate_ns += weight;
}

/*
 * Whose time it is is known, and nothing else: it belongs to no state, and to no label. The thread of losses of no
 * known thread has no id, and is no row of the threads.
 */
static void add_unseen(struct sf_aggregate *aggregate, const struct sf_profile *profile,
		       const struct sf_profile_sample *sample)
{
	const uint64_t ns = sf_profile_weight(sample, aggregate->clock);

	aggregate->total_ns += ns;
	aggregate->unseen_ns += ns;
	if (!profile->threads[sample->thread].tid)
		return;
	aggregate->threads.items[sample->thread].key = sample->thread;
	aggregate->threads.items[sample->thread].ns += ns;
}

static uint32_t count_unsampled(const struct sf_profile *profile, const struct sf_shares *threads)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile->n_threads; i++)
		n += !threads->items[i].samples && profile->threads[i].tid != 0;
	return n;
}

static void add_sample(struct sf_aggregate *aggregate, const struct sf_profile *profile,
		       const struct sf_profile_sample *sample)
{
	uint32_t wait = wait_of(profile, sample);

	if (sample->unseen) {
		add_unseen(aggregate, profile, sample);
		return;
	}
	aggregate->total_ns += sf_profile_weight(sample, aggregate->clock);
	add_managed(aggregate, profile, sample);
	aggregate->cpu_ns += sample->cpu_ns;
	aggregate->wall_ns += sample->wall_ns;
	aggregate->offcpu_ns += sf_profile_weight(sample, SF_CLOCK_OFFCPU);
	aggregate->amount += sample->amount;
	aggregate->samples++;
	aggregate->sample_ticks += sample->ticks;
	aggregate->unheld_ticks += sample->unheld ? sample->ticks : 0;
	aggregate->ends[sample->end] += sample->ticks;
	add_share(&aggregate->threads.items[sample->thread], sample->thread, sample,
		  aggregate->clock);
	add_state(aggregate, sample);
	add_share(&aggregate->labels.items[sample->label], sample->label, sample, aggregate->clock);
	if (sample->second_label)
		add_share(&aggregate->labels.items[sample->second_label], sample->second_label, sample, aggregate->clock);
	if (wait)
		add_share(&aggregate->waits.items[wait], wait, sample, aggregate->clock);
}

/* --- processes: the sums of their threads; those with the same name are one row --- */

/* By name, and then by process: a row is a run of these. */
static int by_process(const void *left, const void *right, void *arg)
{
	const struct sf_profile *profile = arg;
	const struct sf_profile_thread *a = &profile->threads[*(const uint32_t *)left];
	const struct sf_profile_thread *b = &profile->threads[*(const uint32_t *)right];

	return a->process_name != b->process_name ? sf_order(a->process_name, b->process_name) : sf_order(a->process, b->process);
}

static int longest_first(const void *left, const void *right)
{
	const struct sf_process_total *a = left, *b = right;

	return a->ns != b->ns ? sf_order(b->ns, a->ns) : sf_order(a->pid, b->pid);
}

static void add_thread(struct sf_process_total *total, const struct sf_profile_thread *thread, const struct sf_share *share)
{
	total->n_processes += total->last != thread->process;
	total->last = thread->process;
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

static bool add_processes(const struct sf_profile *profile, struct sf_aggregate *ret, struct sf_error *err)
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

/* --- all of it --- */

static bool add_samples(struct sf_aggregate *aggregate, const struct sf_profile *profile,
			struct sf_error *err)
{
	if (!make_shares(&aggregate->threads, profile->n_threads) ||
	    !make_shares(&aggregate->states, SF_N_STATES) ||
	    !make_shares(&aggregate->waits, profile->n_functions) ||
	    !make_shares(&aggregate->labels, (size_t)profile->n_labels + 1))
		return sf_fail_memory(err);
	for (size_t i = 0; i < profile->n_samples; i++)
		add_sample(aggregate, profile, &profile->samples[i]);
	aggregate->n_unsampled = count_unsampled(profile, &aggregate->threads);
	if (!add_processes(profile, aggregate, err))
		return false;
	sort_shares(&aggregate->threads, by_clock);
	sort_shares(&aggregate->states, by_elapsed_time);
	sort_shares(&aggregate->waits, by_elapsed_time);
	sort_shares(&aggregate->labels, by_clock);
	return true;
}

static void add_lost(struct sf_lost_total *total, const struct sf_profile_loss *loss)
{
	total->ticks += loss->ticks;
	total->cpu_ns += loss->cpu_ns;
	total->wall_ns += loss->wall_ns;
	total->amount += loss->amount;
}

static void add_losses(struct sf_aggregate *aggregate, const struct sf_profile *profile)
{
	for (size_t i = 0; i < profile->n_losses; i++) {
		add_lost(&aggregate->lost, &profile->losses[i]);
		add_lost(&aggregate->lost_by[profile->losses[i].cause], &profile->losses[i]);
	}
	for (uint32_t i = 0; i < profile->n_threads; i++)
		aggregate->cpu_counted_ns += profile->threads[i].cpu_counted_ns;
	aggregate->cpu_counted_ns += aggregate->lost_by[SF_LOSS_UNSEEN].cpu_ns;
}

static void add_holds(struct sf_aggregate *aggregate, const struct sf_profile *profile)
{
	struct sf_histogram histogram = { 0 };

	for (size_t i = 0; i < profile->n_holds; i++)
		sf_histogram_add(&histogram, profile->holds[i].up_to_ns, profile->holds[i].count);
	aggregate->holds = histogram.n;
	aggregate->hold_p50_ns = sf_histogram_percentile(&histogram, 0.50);
	aggregate->hold_p99_ns = sf_histogram_percentile(&histogram, 0.99);
	aggregate->hold_max_ns = histogram.max_ns;
}

static bool add_stacks(struct sf_aggregate *aggregate, const struct sf_profile *profile,
		       struct sf_error *err)
{
	return (sf_call_tree_init(profile, aggregate->clock, &aggregate->tree) || sf_fail_memory(err)) &&
	       sf_aggregate_functions(profile, aggregate, err);
}

bool sf_aggregate_create(const struct sf_profile *profile, enum sf_clock clock,
			 struct sf_aggregate **ret, struct sf_error *err)
{
	SF_CLEANUP(sf_aggregate_destroy) struct sf_aggregate *aggregate =
		calloc(1, sizeof(*aggregate));

	if (!aggregate)
		return sf_fail_memory(err);
	aggregate->clock = clock;
	if (!add_samples(aggregate, profile, err) || !add_stacks(aggregate, profile, err))
		return false;
	add_losses(aggregate, profile);
	add_holds(aggregate, profile);
	*ret = sf_steal(&aggregate);
	return true;
}
