/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop so many calls deep, for bench/signal_turns.py, that measures how long it itself ran: time that passes between two
 * turns is its own as long as it is short; what is longer went to an interrupt, a signal, or somebody else. So what it
 * costs to be watched is known to the microsecond, however fast the machine is just now.
 */
#include <stdint.h>
#include <time.h>

#define OWN_NS 400 /* a turn takes some 30; an interrupt above 1,000 */

/* The time spent in turns, out of wall_ns elapsed. */
__attribute__((visibility("default"))) uint64_t bench_descend(unsigned depth, uint64_t wall_ns);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t turn(uint64_t wall_ns)
{
	const uint64_t began_ns = now_ns();
	uint64_t own_ns = 0, last_ns = began_ns, next_ns;

	while (last_ns - began_ns < wall_ns) {
		next_ns = now_ns();
		own_ns += next_ns - last_ns < OWN_NS ? next_ns - last_ns : 0;
		last_ns = next_ns;
	}
	return own_ns;
}

__attribute__((noinline)) uint64_t bench_descend(unsigned depth, uint64_t wall_ns)
{
	const uint64_t own_ns = depth > 1 ? bench_descend(depth - 1, wall_ns) : turn(wall_ns);

	__asm__ volatile("");
	return own_ns;
}
