/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four threads with one alternate stack, as varnish's have, where only a handler of faults would run: handlers of a profiler
 * that run there in two threads at once overwrite each other's frames.
 *
 * in_shared_altstack SECONDS
 */
#include <pthread.h>
#include <sys/mman.h>

#include "in_program.h"

#define N_THREADS 4
#define LEAST_TURNS 10

static int64_t end_ns;
static stack_t stack = { .ss_size = 65536 };

static NOINLINE unsigned long spin_beside(void)
{
	unsigned long turns = 0;

	for (; turns < LEAST_TURNS || now_ns() < end_ns; turns++)
		burn_ns(1000000);
	return turns;
}

static void *run(void *arg)
{
	(void)arg;
	return sigaltstack(&stack, NULL) == 0 ? (void *)spin_beside() : NULL;
}

int main(int argc, char **argv)
{
	const double seconds = argument(argc, argv, 1, 2);
	pthread_t threads[N_THREADS];
	unsigned bad = 0;

	bounded(60 + 20 * seconds);
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end_ns = now_ns() + seconds * NS_PER_S;
	ready();
	for (unsigned i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			return 2;
	for (unsigned i = 0; i < N_THREADS; i++) {
		void *turns;

		pthread_join(threads[i], &turns);
		bad += (unsigned long)turns < LEAST_TURNS;
	}
	return bad != 0;
}
