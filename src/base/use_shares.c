/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Let S be the CPU time for which each sample of the threads that use little stands: their CPU time divided by the number of
 * their samples. Samples come at random. So of threads that use C each, a part of p = e^(-C/S) has no sample, and for each of
 * the others those have p / (1 - p) * C. This is what a thread that has a sample lacks, however many it has: samples of some
 * threads may be lost more often than those of others.
 */
#include "base/use_shares.h"

#define FOUND_NS 50000000    /* so often the parts are found anew, while threads end */
#define LITTLE_MOMENTS 16    /* a thread that runs for the time between so many has a sample, but for one of some thousands */
#define MOST_MOMENTS 8       /* a sample stands for the time between so many at the most: not each moment on a CPU gives one */
#define MOST_TAKEN 2.0       /* times of what samples lack on average */

/* Where samples of other threads are lost, one with so many samples has no part in chance either, however little it has used. */
bool sf_cpu_use_is_little(const struct sf_cpu_use *use)
{
	return use->used_ns < LITTLE_MOMENTS * use->every_ns && use->n_samples < LITTLE_MOMENTS;
}

/* e^(-used/sample): by the first members of the exponential series of a quarter of it. */
static double part_without_sample(double used_ns, double sample_ns)
{
	const double x = used_ns / sample_ns / 4;
	const double root = 1 + x + x * x / 2 + x * x * x / 6;

	return 1 / (root * root * root * root);
}

/* CPU time that a thread with samples lacks. */
static double lacks_ns(const struct sf_cpu_use *use, double sample_ns)
{
	const double part = part_without_sample(use->used_ns, sample_ns);

	if (!use->n_samples)
		return 0;
	/* A thread that has used next to nothing lacks what a sample stands for. */
	return part < 1 ? use->used_ns * part / (1 - part) : sample_ns;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Of the threads that use little. */
struct sums {
	double used_ns, unsampled_ns, every_ns, n_samples, n, lacks_ns;
};

static void add_up(struct sums *sums, size_t n, sf_cpu_use_fn *get, const void *arg)
{
	struct sf_cpu_use use;

	for (size_t i = 0; i < n; i++) {
		if (!get(arg, i, &use) || !sf_cpu_use_is_little(&use))
			continue;
		sums->used_ns += use.used_ns;
		sums->unsampled_ns += use.unsampled_ns;
		sums->every_ns += use.every_ns;
		sums->n_samples += use.n_samples;
		sums->n++;
	}
}

static double sum_of_lacks(double sample_ns, size_t n, sf_cpu_use_fn *get, const void *arg)
{
	struct sf_cpu_use use;
	double ret = 0;

	for (size_t i = 0; i < n; i++) {
		if (get(arg, i, &use) && sf_cpu_use_is_little(&use))
			ret += lacks_ns(&use, sample_ns);
	}
	return ret;
}

/* The parts of both sides, so that as much is given as is taken. Where samples may stand for all of it, all is given. */
static void find_parts(struct sf_use_shares *shares, const struct sums *sums)
{
	const double pool_ns = (double)shares->pool_ns, most_ns = MOST_MOMENTS * sums->every_ns / sums->n;

	shares->taken = least((sums->unsampled_ns + pool_ns) / sums->lacks_ns, least(most_ns / shares->sample_ns, MOST_TAKEN));
	shares->given = sums->unsampled_ns ? least((shares->taken * sums->lacks_ns - pool_ns) / sums->unsampled_ns, 1) : 0;
	if (shares->given < 0)
		shares->given = 0;
}

void sf_use_shares_find(struct sf_use_shares *shares, size_t n, sf_cpu_use_fn *get, const void *arg, uint64_t now_ns)
{
	struct sums sums = { 0 };

	if (shares->found_ns && now_ns - shares->found_ns < FOUND_NS)
		return;
	shares->found_ns = now_ns;
	shares->given = shares->taken = 0;
	add_up(&sums, n, get, arg);
	if (!sums.n_samples || sums.unsampled_ns + (double)shares->pool_ns <= 0)
		return;
	shares->sample_ns = sums.used_ns / sums.n_samples;
	sums.lacks_ns = sum_of_lacks(shares->sample_ns, n, get, arg);
	find_parts(shares, &sums);
}

/* A thread that lives may get a sample, and give nothing. So no more is taken than was given. */
int64_t sf_use_shares_move(struct sf_use_shares *shares, const struct sf_cpu_use *use)
{
	double ns;

	if (!sf_cpu_use_is_little(use))
		return 0;
	if (use->n_samples)
		ns = least(shares->taken * lacks_ns(use, shares->sample_ns), (double)shares->pool_ns);
	else
		ns = -shares->given * use->unsampled_ns - 0.5; /* rounded */
	shares->pool_ns -= (int64_t)ns;
	return (int64_t)ns;
}
