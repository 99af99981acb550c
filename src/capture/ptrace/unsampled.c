/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time without a sample of its own: compares the CPU time of whole processes with that of the threads that were found in
 * them, and shares out that of threads that use little.
 */
#include "capture/ptrace/unsampled.h"

#define NOTABLE_CPU_NS 1000000      /* below this a difference between two clocks is no loss */
#define NOTABLE_CHILDREN_NS 20000000 /* that clock ticks 100 times a second, for user and for system */

/* --- time that is in no account --- */

uint32_t sf_unseen_ticks(const struct sf_watch *watch, uint64_t cpu_ns)
{
	return (uint32_t)((cpu_ns / 1000 * watch->options->rate_mhz + 500000000) / 1000000000);
}

static void lose(const struct sf_watch *watch, uint64_t cpu_ns)
{
	const struct sf_weight weight = { .cpu_ns = cpu_ns, .ticks = sf_unseen_ticks(watch, cpu_ns) };

	sf_relay_loss(watch->relay, NULL, SF_LOSS_UNSEEN, &weight);
}

void sf_unseen_lose(const struct sf_watch *watch, const struct sf_watched_process *process)
{
	const uint64_t total_ns = process->last_cpu_ns - process->cpu_ns, seen_ns = process->threads_cpu_ns;

	if (total_ns > seen_ns + NOTABLE_CPU_NS && !watch->has_names && !watch->cgroup && !sf_watch_is_sampled(watch) &&
	    !process->only_awake && !process->is_refused)
		lose(watch, total_ns - seen_ns);
}

void sf_unseen_lose_children(const struct sf_watch *watch)
{
	const uint64_t total_ns = watch->children_cpu_ns, seen_ns = watch->ended_cpu_ns;

	if (watch->options->children && !watch->options->filter && total_ns > seen_ns + NOTABLE_CHILDREN_NS)
		lose(watch, total_ns - seen_ns);
}

/* *seen_ret: what the threads had that have ended. */
static uint64_t look_at_process(const struct sf_watch *watch, const struct sf_watched_process *process, uint64_t *seen_ret)
{
	uint64_t cpu_ns = process->last_cpu_ns, total_ns, children_ns;

	(void)sf_process_cpu(process->pid, &cpu_ns); /* the last scan may be long ago */
	total_ns = cpu_ns > process->cpu_ns ? cpu_ns - process->cpu_ns : 0;
	*seen_ret += process->threads_cpu_ns;
	if (!watch->options->children)
		return total_ns;
	children_ns = sf_process_children_cpu(process->pid);
	return total_ns + (children_ns > process->children_cpu_ns ? children_ns - process->children_cpu_ns : 0);
}

/* At an exec by another thread of its process, a thread's counts become those of the other one: they may fall. */
static void add_switches(struct sf_thread *thread, const struct sf_task_run *run, struct sf_unseen *ret)
{
	const uint64_t before = thread->glance_switches;

	thread->glance_switches = run->switches;
	if (run->switches <= before)
		return;
	ret->switches += run->switches - before;
	ret->n_ran++;
}

/* The other threads are no engine's to sample, or have samples in proportion. */
static bool should_have_sample(const struct sf_thread *thread)
{
	return thread->watched && !thread->ran && !thread->by_samples && !thread->only_awake && !thread->is_32_bit && !thread->is_refused;
}

/* By samples its time is known since the first of them only. One that has ended without a sample will be lost. */
static uint64_t look_at_thread(struct sf_thread *thread, uint64_t little_ns, struct sf_unseen *ret)
{
	struct sf_task_run run;
	const bool lives = sf_task_run(&thread->task, &run);

	if (lives)
		add_switches(thread, &run, ret);
	if (lives && should_have_sample(thread) && run.cpu_ns - thread->first_cpu_ns <= little_ns)
		ret->unsampled_ns += run.cpu_ns - thread->first_cpu_ns;
	if (!lives && !thread->ran)
		return 0;
	return (lives ? run.cpu_ns : thread->run.cpu_ns) - thread->first_cpu_ns;
}

void sf_unseen_look(const struct sf_watch *watch, uint64_t little_ns, struct sf_unseen *ret)
{
	uint64_t seen_ns = watch->ended_cpu_ns;

	*ret = (struct sf_unseen){ .cpu_ns = watch->children_cpu_ns };
	for (size_t i = 0; i < watch->processes.n; i++)
		ret->cpu_ns += look_at_process(watch, &watch->processes.items[i], &seen_ns);
	for (size_t i = 0; i < watch->threads.n; i++)
		seen_ns += look_at_thread(watch->threads.items[i], little_ns, ret);
	ret->unseen_ns = watch->lost_cpu_ns + (ret->cpu_ns > seen_ns ? ret->cpu_ns - seen_ns : 0);
}

/* --- threads that use little --- */

static struct sf_cpu_use use_of(const struct sf_thread *thread)
{
	return (struct sf_cpu_use){
		.used_ns = (double)(thread->run.cpu_ns - thread->first_cpu_ns),
		.unsampled_ns = thread->ran ? 0 : (double)thread->account.cpu_ns,
		.every_ns = thread->n_looks ? (double)(thread->looked_for_ns / thread->n_looks) : 0,
		.n_samples = thread->n_ran,
	};
}

static bool takes_part(const struct sf_thread *thread)
{
	return thread->watched && !thread->is_32_bit && !thread->is_refused && !thread->only_awake;
}

bool sf_little_use_is(const struct sf_thread *thread)
{
	const struct sf_cpu_use use = use_of(thread);

	return takes_part(thread) && sf_cpu_use_is_little(&use);
}

/* The threads of one process. */
struct threads {
	const struct sf_watch *watch;
	int32_t pid;
};

static bool get(const void *arg, size_t i, struct sf_cpu_use *ret)
{
	const struct threads *threads = arg;
	const struct sf_thread *thread = threads->watch->threads.items[i];

	if (thread->task.pid != threads->pid || !takes_part(thread))
		return false;
	*ret = use_of(thread);
	return true;
}

/* The elapsed time goes with the CPU time. */
void sf_little_use_end(const struct sf_watch *watch, struct sf_watched_process *process, struct sf_thread *thread, uint64_t now_ns)
{
	const struct threads threads = { watch, process->pid };
	const struct sf_cpu_use use = use_of(thread);
	int64_t ns;

	if (!sf_little_use_is(thread))
		return;
	sf_use_shares_find(&process->little, watch->threads.n, get, &threads, now_ns);
	ns = sf_use_shares_move(&process->little, &use);
	thread->account.cpu_ns += (uint64_t)ns;
	thread->account.awake_ns += ns;
}

void sf_little_use_lose(struct sf_watch *watch, const struct sf_use_shares *shares)
{
	const uint64_t ns = (uint64_t)shares->pool_ns;
	const struct sf_weight weight = { .cpu_ns = ns, .wall_ns = ns, .ticks = sf_unseen_ticks(watch, ns) };

	if (!ns)
		return;
	watch->lost_cpu_ns += ns;
	sf_relay_loss(watch->relay, NULL, watch->over ? SF_LOSS_REST : SF_LOSS_GONE, &weight);
}
