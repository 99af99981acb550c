/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed amount of work, so that what a profiler adds to it shows: N threads do TURNS million turns each,
 * DEPTH calls deep. Prints the CPU time of the threads by their own clocks, that of the whole process, its context
 * switches, and the elapsed time, in seconds.
 *
 * in_work [TURNS [THREADS [DEPTH]]]
 */
#include <pthread.h>
#include <sys/resource.h>

#include "in_program.h"

static unsigned long turns;

static NOINLINE void do_turns(void)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

static NOINLINE void descend(unsigned depth)
{
	if (depth <= 1)
		do_turns();
	else
		descend(depth - 1);
	NO_TAIL_CALL();
}

struct worker {
	pthread_t thread;
	unsigned depth;
	int64_t cpu_ns;
};

static void *work(void *arg)
{
	struct worker *worker = arg;
	int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	descend(worker->depth);
	worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	return NULL;
}

static double seconds_of(struct timeval time)
{
	return time.tv_sec + time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 2, 1), depth = argument(argc, argv, 3, 1);
	struct worker workers[64] = { 0 };
	int64_t start = now_ns(), cpu_ns = 0;
	struct rusage usage;

	turns = argument(argc, argv, 1, 500) * 1000000;
	if (n < 1 || n > 64)
		return 2;
	bounded(600);
	ready();
	for (unsigned i = 0; i < n; i++) {
		workers[i].depth = depth;
		if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 2;
	}
	work(&workers[0]);
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			pthread_join(workers[i].thread, NULL);
		cpu_ns += workers[i].cpu_ns;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("threads_cpu %.6f process_cpu %.6f wall %.6f switches %ld\n", cpu_ns / 1e9,
	       seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), (now_ns() - start) / 1e9,
	       usage.ru_nvcsw + usage.ru_nivcsw);
	return 0;
}
