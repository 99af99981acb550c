/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread whose work repeats with each millisecond of its own CPU time: the first half of it is in first_half(), the
 * other one in second_half(). A clock whose period is a whole number of milliseconds, and never changes, shows one of
 * the two only.
 *
 * periodic [SECONDS]
 */
#include "program.h"

#define CYCLE_NS 1000000ll

static volatile unsigned long turns;

static int64_t place_in_cycle(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) % CYCLE_NS;
}

static void work(void)
{
	for (unsigned i = 0; i < 1000; i++)
		turns++;
}

static NOINLINE void first_half(void)
{
	while (place_in_cycle() < CYCLE_NS / 2)
		work();
	NO_TAIL_CALL();
}

static NOINLINE void second_half(void)
{
	while (place_in_cycle() >= CYCLE_NS / 2)
		work();
	KEEP(turns); /* of different length: identical functions would become one */
}

int main(int argc, char **argv)
{
	const int64_t start_ns = now_ns();

	bounded(120);
	ready();
	while (lasts(start_ns, argument(argc, argv, 1, 600))) {
		first_half();
		second_half();
	}
	return 0;
}
