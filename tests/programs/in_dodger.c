/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that runs 1.5 ms of every 4 ms, between the kernel's ticks (of 250 a second) and never on one, and
 * neighbours that spin. A profiler whose clock is looked at on ticks never sees the dodger. Ends when the dodger has used so
 * much CPU time. Prints the CPU time that each kind used, by its own clocks.
 *
 * in_dodger [CPU-SECONDS [NEIGHBOURS]]
 */
#include <pthread.h>

#include "in_program.h"

#define PERIOD_NS 4000000
#define RUN_NS 1500000
#define AFTER_TICK_NS 400000

static _Atomic bool over;

static void sleep_until(int64_t at)
{
	struct timespec when = { at / NS_PER_S, at % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

/* The coarse clock moves on the tick. */
static int64_t next_tick(void)
{
	int64_t before = clock_ns(CLOCK_MONOTONIC_COARSE);

	while (clock_ns(CLOCK_MONOTONIC_COARSE) == before)
		;
	return now_ns();
}

static NOINLINE void dodge(int64_t until)
{
	while (now_ns() < until)
		for (volatile int i = 0; i < 300; i++)
			;
}

static NOINLINE void *neighbour(void *arg)
{
	while (!over)
		for (volatile int i = 0; i < 300; i++)
			;
	*(int64_t *)arg = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 2, 1);
	pthread_t threads[16];
	int64_t cpu[16] = { 0 }, at, own = 0, others = 0;
	double seconds;

	if (n > 16)
		return 2;
	seconds = argument(argc, argv, 1, 1);
	bounded(30 + 30 * seconds);
	ready();
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, neighbour, &cpu[i]) != 0)
			return 2;
	for (at = next_tick() + AFTER_TICK_NS; own < (int64_t)(seconds * NS_PER_S);) {
		int64_t before;

		sleep_until(at);
		before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		dodge(at + RUN_NS);
		own += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		do
			at += PERIOD_NS;
		while (at < now_ns());
	}
	over = true;
	for (unsigned i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		others += cpu[i];
	}
	printf("dodge %.4f neighbour %.4f\n", own / 1e9, others / 1e9);
	return 0;
}
