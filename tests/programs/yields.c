/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that give their CPU away after each piece of work, by sched_yield() or by a very short sleep. Where more want
 * CPUs than there are, each is ready most of the time and stands behind that call, which itself takes hardly any CPU
 * time.
 *
 * yields CPU-SECONDS THREADS [nap]
 */
#include <pthread.h>
#include <sched.h>

#include "program.h"

#define PIECE_NS 1000000 /* of work, on whatever processor: some need several times as long for the same turns as others */
#define SOME_TURNS 100000

static double cpu_seconds;
static bool naps;
static int turns;            /* of a piece of work */

static NOINLINE void calibrate(void)
{
	int64_t least_ns = INT64_MAX;

	for (unsigned k = 0; k < 5; k++) {
		const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int64_t ns;

		for (volatile int i = 0; i < SOME_TURNS; i++)
			;
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	turns = (int)((int64_t)SOME_TURNS * PIECE_NS / (least_ns > 0 ? least_ns : 1));
}

static NOINLINE void spin_between(void)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static void *work(void *arg)
{
	while (works(cpu_seconds)) {
		spin_between();
		if (naps)
			sleep_ns(50000);
		else
			sched_yield();
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 2, 4);
	pthread_t threads[16];

	cpu_seconds = argument(argc, argv, 1, 2);
	naps = argument_is(argc, argv, 3, "nap");
	if (n > 16)
		return 2;
	calibrate();
	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
