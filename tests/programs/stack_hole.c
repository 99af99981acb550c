/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function with a large array that it never uses: its pages are not in memory, and the kernel's copy of the stack ends there.
 * With `larger`, the array has more room than the first copy of a thread that is held.
 *
 * stack_hole [CPU-SECONDS [larger]]
 */
#include "program.h"

static NOINLINE void spin_inside(double seconds)
{
	while (works(seconds))
		;
	NO_TAIL_CALL();
}

static NOINLINE void with_unused_array(double seconds)
{
	char unused[20000];

	__asm__ volatile("" : : "r"(unused) : "memory");
	spin_inside(seconds);
	__asm__ volatile("" : : "r"(unused) : "memory");
}

static NOINLINE void with_larger_array(double seconds)
{
	char unused[300000];

	__asm__ volatile("" : : "r"(unused) : "memory");
	spin_inside(seconds);
	__asm__ volatile("" : : "r"(unused) : "memory");
}

static NOINLINE void outer(double seconds, bool larger)
{
	if (larger)
		with_larger_array(seconds);
	else
		with_unused_array(seconds);
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	bounded(120);
	outer(argc > 1 ? atof(argv[1]) : 1, argc > 2);
	tell_cpu();
	return 0;
}
