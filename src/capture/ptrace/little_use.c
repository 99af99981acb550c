/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares out the CPU time of threads that use little: little_use.h says why. Let S be the CPU time for which each sample of
 * these threads stands: their CPU time divided by the number of their samples. Samples come at random. So of threads that
 * use C each, a part of e^(-C/S) has no sample, and the CPU time of those is e^(-C/S) * S for each sample of the others. This is
 * what a sample of a thread that has used C lacks.
 */
#include "capture/ptrace/little_use.h"
#include "capture/ptrace/unseen.h"

#define SHARED_NS 50000000   /* so often the parts are found anew, while threads end */
#define LITTLE_LOOKS 16      /* a thread that runs for the time between so many looks has a sample, but for one of some thousands */
#define MOST_LOOKS 8         /* a sample stands for the time between so many looks at the most: not each look at a thread on a CPU gives one */
#define MOST_TAKEN 2.0       /* times of what samples lack on average */

void sf_little_use_looked(struct sf_thread *thread, uint64_t now_ns)
{
	thread->n_looks++;
	thread->looked_for_ns += now_ns - thread->seen_ns;
}

/* The time between two looks, on average. */
static uint64_t look_every_ns(const struct sf_thread *thread)
{
	return thread->n_looks ? thread->looked_for_ns / thread->n_looks : 0;
}

static uint64_t used_ns(const struct sf_thread *thread)
{
	return thread->run.cpu_ns - thread->first_cpu_ns;
}

bool sf_little_use_is(const struct sf_thread *thread)
{
	return thread->watched && !thread->is_32_bit && !thread->is_refused && !thread->only_awake &&
	       used_ns(thread) < LITTLE_LOOKS * look_every_ns(thread);
}

/* e^(-used/sample): by the first members of the exponential series of a quarter of it. */
static double part_without_sample(double used_ns, double sample_ns)
{
	const double x = used_ns / sample_ns / 4;
	const double root = 1 + x + x * x / 2 + x * x * x / 6;

	return 1 / (root * root * root * root);
}

/* CPU time that the samples of a thread lack. */
static double lacks_ns(const struct sf_thread *thread, double sample_ns)
{
	if (!thread->n_ran || !sf_little_use_is(thread))
		return 0;
	return thread->n_ran * sample_ns * part_without_sample((double)used_ns(thread), sample_ns);
}

/* CPU time of a thread without a sample. */
static double has_ns(const struct sf_thread *thread)
{
	return !thread->ran && sf_little_use_is(thread) ? (double)thread->account.cpu_ns : 0;
}

/* Of the threads of a process that use little. */
struct sums {
	double used_ns, has_ns, lacks_ns, looked_for_ns;
	double n_samples, n_looks;
};

static void add_thread(const struct sf_thread *thread, struct sums *sums)
{
	sums->used_ns += (double)used_ns(thread);
	sums->has_ns += has_ns(thread);
	sums->looked_for_ns += (double)thread->looked_for_ns;
	sums->n_samples += thread->n_ran;
	sums->n_looks += thread->n_looks;
}

static bool concerns(const struct sf_watched_process *process, const struct sf_thread *thread)
{
	return thread->task.pid == process->pid && sf_little_use_is(thread);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* The parts of both sides, so that as much is given as is taken. Where samples may stand for all of it, all is given. */
static void share(const struct sf_watch *watch, struct sf_watched_process *process)
{
	struct sf_little_use *use = &process->little;
	const double pool_ns = (double)use->pool_ns;
	struct sums sums = { 0 };
	double most_ns;

	use->given = use->taken = 0;
	for (size_t i = 0; i < watch->threads.n; i++) {
		if (concerns(process, watch->threads.items[i]))
			add_thread(watch->threads.items[i], &sums);
	}
	if (!sums.n_samples || sums.used_ns <= 0 || sums.has_ns + pool_ns <= 0)
		return;
	most_ns = MOST_LOOKS * sums.looked_for_ns / sums.n_looks;
	use->sample_ns = sums.used_ns / sums.n_samples;
	for (size_t i = 0; i < watch->threads.n; i++) {
		if (concerns(process, watch->threads.items[i]))
			sums.lacks_ns += lacks_ns(watch->threads.items[i], use->sample_ns);
	}
	use->taken = least((sums.has_ns + pool_ns) / sums.lacks_ns, least(most_ns / use->sample_ns, MOST_TAKEN));
	use->given = sums.has_ns ? least((use->taken * sums.lacks_ns - pool_ns) / sums.has_ns, 1) : 0;
	if (use->given < 0)
		use->given = 0;
}

/* The elapsed time goes with the CPU time. */
static void move(struct sf_little_use *use, struct sf_thread *thread, int64_t ns)
{
	use->pool_ns -= ns;
	thread->account.cpu_ns += (uint64_t)ns;
	thread->account.awake_ns += ns;
}

void sf_little_use_end(const struct sf_watch *watch, struct sf_watched_process *process, struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_little_use *use = &process->little;

	if (!sf_little_use_is(thread))
		return;
	if (!use->shared_ns || now_ns - use->shared_ns >= SHARED_NS) {
		use->shared_ns = now_ns;
		share(watch, process);
	}
	if (use->taken <= 0) /* sample_ns may not be known */
		return;
	if (thread->ran)
		move(use, thread, (int64_t)(use->taken * lacks_ns(thread, use->sample_ns)));
	else
		move(use, thread, -(int64_t)(use->given * has_ns(thread)));
}

void sf_little_use_lose(struct sf_watch *watch, const struct sf_little_use *use)
{
	const uint64_t ns = use->pool_ns > 0 ? (uint64_t)use->pool_ns : 0;
	const struct sf_weight weight = { .cpu_ns = ns, .wall_ns = ns, .ticks = sf_unseen_ticks(watch, ns) };

	if (!ns)
		return;
	watch->lost_cpu_ns += ns;
	sf_relay_loss(watch->relay, NULL, watch->over ? SF_LOSS_REST : SF_LOSS_GONE, &weight);
}
