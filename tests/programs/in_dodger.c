/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that runs 1.5 ms of every 4 ms, between the kernel's ticks (of 250 a second) and never on one, and
 * neighbours that spin. A profiler whose clock is looked at on ticks never sees the dodger. Prints the share of
 * the CPU time that each kind used, by its own clocks.
 *
 * in_dodger [SECONDS [NEIGHBOURS]]
 */
#include <pthread.h>

#include "in_program.h"

#define PERIOD_NS 4000000
#define RUN_NS 1500000
#define AFTER_TICK_NS 400000

static int64_t start_ns;
static double seconds;

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
	while (lasts(start_ns, seconds))
		for (volatile int i = 0; i < 300; i++)
			;
	*(int64_t *)arg = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 2, 1);
	pthread_t threads[16];
	int64_t cpu[16] = { 0 }, at, own, others = 0;

	if (n > 16)
		return 2;
	seconds = argument(argc, argv, 1, 3);
	bounded(30 + 10 * seconds);
	start_ns = now_ns();
	ready();
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, neighbour, &cpu[i]) != 0)
			return 2;
	own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (at = next_tick() + AFTER_TICK_NS; lasts(start_ns, seconds);) {
		sleep_until(at);
		dodge(at + RUN_NS);
		do
			at += PERIOD_NS;
		while (at < now_ns());
	}
	own = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
	for (unsigned i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		others += cpu[i];
	}
	printf("dodge %.4f neighbour %.4f\n", own / 1e9, others / 1e9);
	return 0;
}
