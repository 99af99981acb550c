/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that give their CPU away after each piece of work, to each other if there are more of them than CPUs: most of the time
 * each is ready and stands behind sched_yield(), which itself takes hardly any CPU time.
 *
 * yields CPU-SECONDS THREADS
 */
#include <pthread.h>
#include <sched.h>

#include "program.h"

static double cpu_seconds;

static NOINLINE void spin_between_yields(void)
{
	for (volatile int i = 0; i < 600000; i++)
		;
}

static void *work(void *arg)
{
	while (works(cpu_seconds)) {
		spin_between_yields();
		sched_yield();
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 2, 4);
	pthread_t threads[16];

	cpu_seconds = argument(argc, argv, 1, 2);
	if (n > 16)
		return 2;
	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
