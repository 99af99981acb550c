/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that is always busy, beside many that work for a moment and nap. Such a thread is on a CPU too shortly to be
 * seen at each look. A burst has two equal halves, in functions of their own: one is where the thread wakes up, the other is
 * where it goes to sleep. At its end the program prints the CPU time of the busy thread, of the nappers, and of each half,
 * by the threads' own CPU clocks.
 *
 * nappers [CPU-SECONDS [THREADS [BURST-MICROSECONDS [NAP-MICROSECONDS]]]]
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "program.h"

#define PIECE_NS 100000 /* the busy thread looks at its clock so often */
#define SOME_TURNS 100000

struct napper {
	pthread_t thread;
	unsigned seed;
	int64_t cpu_ns, first_ns, second_ns;
};

static double cpu_seconds, turns_per_ns;
static int64_t burst_ns, nap_ns;
static volatile bool over; /* the busy thread says so: the clock of a process with many threads is slow to read */

static NOINLINE void calibrate(void)
{
	int64_t least_ns = INT64_MAX;

	for (unsigned k = 0; k < 50; k++) {
		const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int64_t ns;

		for (volatile int i = 0; i < SOME_TURNS; i++)
			;
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	turns_per_ns = (double)SOME_TURNS / (double)(least_ns > 0 ? least_ns : 1);
}

/* KEEP makes them differ: a compiler folds equal functions. */
static NOINLINE void spin_busy(int turns)
{
	KEEP(1);
	for (volatile int i = 0; i < turns; i++)
		;
}

static NOINLINE void spin_first_half(int turns)
{
	KEEP(2);
	for (volatile int i = 0; i < turns; i++)
		;
}

static NOINLINE void spin_second_half(int turns)
{
	KEEP(3);
	for (volatile int i = 0; i < turns; i++)
		;
}

static NOINLINE void burst(struct napper *napper)
{
	const int turns = (int)((double)burst_ns / 2 * turns_per_ns);
	const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int64_t half_ns;

	spin_first_half(turns);
	half_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	napper->first_ns += half_ns - start_ns;
	spin_second_half(turns);
	napper->second_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - half_ns;
}

/* Naps are of half to one and a half of the length: threads that keep step would all be awake at once. */
static void *nap(void *arg)
{
	struct napper *napper = arg;

	prctl(PR_SET_NAME, "napper");
	while (!over) {
		sleep_ns(nap_ns / 2 + (int64_t)((double)rand_r(&napper->seed) / RAND_MAX * (double)nap_ns));
		burst(napper);
	}
	napper->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void keep_busy(void)
{
	const int turns = (int)(PIECE_NS * turns_per_ns);

	while (works(cpu_seconds))
		spin_busy(turns);
	over = true;
}

int main(int argc, char **argv)
{
	const unsigned n = argument(argc, argv, 2, 300);
	struct napper *nappers = calloc(n + 1, sizeof(*nappers));
	int64_t cpu_ns = 0, first_ns = 0, second_ns = 0;
	pthread_attr_t attributes;

	cpu_seconds = argument(argc, argv, 1, 2);
	burst_ns = argument(argc, argv, 3, 200) * 1000;
	nap_ns = argument(argc, argv, 4, 100000) * 1000;
	bounded(60 + 20 * cpu_seconds);
	calibrate();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 16);
	for (unsigned i = 0; i < n; i++) {
		nappers[i].seed = i + 1;
		if (pthread_create(&nappers[i].thread, &attributes, nap, &nappers[i]) != 0)
			return 2;
	}
	ready();
	keep_busy();
	for (unsigned i = 0; i < n; i++) {
		pthread_join(nappers[i].thread, NULL);
		cpu_ns += nappers[i].cpu_ns;
		first_ns += nappers[i].first_ns;
		second_ns += nappers[i].second_ns;
	}
	printf("busy %.6f\nnappers %.6f\nfirst_half %.6f\nsecond_half %.6f\n", clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9, cpu_ns / 1e9,
	       first_ns / 1e9, second_ns / 1e9);
	tell_cpu();
	return 0;
}
