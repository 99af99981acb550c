/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A known split of CPU time: three functions that take 60, 30 and 10 % of it. The work is counted, not
 * timed, in pieces of about 2 ms that follow each other at random, so that no sampling rate
 * falls into step with it. At its end the program prints the split that its thread's own CPU clock
 * measured: what a profiler should print.
 *
 * busy_split [SECONDS [THREADS]]
 */
#include <pthread.h>

#include "program.h"

struct worker {
	pthread_t thread;
	unsigned seed;
	int64_t goal_ns;
	int64_t spent_ns[3];
};

static unsigned long piece; /* turns that take about 2 ms */

static NOINLINE void spin_sixty(unsigned long turns)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

static NOINLINE void spin_thirty(unsigned long turns)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

static NOINLINE void spin_ten(unsigned long turns)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

/*
 * A function of its own: of a slow machine's first second it may be a tenth, which is none of the three's. It counts down,
 * as compilers merge functions that are the same.
 */
static NOINLINE void spin_before(unsigned long turns)
{
	for (volatile unsigned long i = turns; i > 0; i--)
		;
}

static void calibrate(void)
{
	const unsigned long turns = 20000000;
	int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	spin_before(turns);
	piece = turns * 2000000 / (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) + 1;
}

static void *work(void *arg)
{
	static void (*const spin[3])(unsigned long) = { spin_sixty, spin_thirty, spin_ten };
	struct worker *worker = arg;
	int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), before = start, after;

	do {
		unsigned draw = rand_r(&worker->seed) % 10;
		unsigned which = draw < 6 ? 0 : draw < 9 ? 1 : 2;

		spin[which](piece);
		after = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		worker->spent_ns[which] += after - before;
		before = after;
	} while (after - start < worker->goal_ns);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 2);
	unsigned n = argument(argc, argv, 2, 1);
	struct worker workers[16] = { 0 };
	int64_t sum[3] = { 0 }, total = 0;

	if (n < 1 || n > 16)
		return 2;
	bounded(60 + 20 * seconds * n);
	calibrate();
	ready();
	for (unsigned i = 0; i < n; i++) {
		workers[i].seed = 1 + i;
		workers[i].goal_ns = seconds * NS_PER_S;
		if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 2;
	}
	work(&workers[0]);
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			pthread_join(workers[i].thread, NULL);
		for (int k = 0; k < 3; k++) {
			sum[k] += workers[i].spent_ns[k];
			total += workers[i].spent_ns[k];
		}
	}
	printf("spin_sixty %.6f\nspin_thirty %.6f\nspin_ten %.6f\ntotal_seconds %.6f\n",
	       (double)sum[0] / total, (double)sum[1] / total, (double)sum[2] / total, total / 1e9);
	tell_cpu();
	return 0;
}
