/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function with a large array that it never uses: its pages are not in memory, and the kernel's copy of the stack ends there.
 *
 * stack_hole [CPU-SECONDS]
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

static NOINLINE void outer(double seconds)
{
	with_unused_array(seconds);
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	bounded(120);
	outer(argc > 1 ? atof(argv[1]) : 1);
	tell_cpu();
	return 0;
}
