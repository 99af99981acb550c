/* SPDX-License-Identifier: Apache-2.0 */
/* A loop so many calls deep, for bench/signal_turns.py. */
__attribute__((visibility("default"))) void bench_descend(unsigned depth, unsigned long turns);

__attribute__((noinline)) void bench_descend(unsigned depth, unsigned long turns)
{
	if (depth > 1)
		bench_descend(depth - 1, turns);
	else
		for (volatile unsigned long i = 0; i < turns; i++)
			;
	__asm__ volatile("");
}
