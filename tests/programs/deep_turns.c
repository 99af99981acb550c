/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two functions take turns, of 7 and 3 ms of CPU time. Both call the same functions, which take more stack than the kernel copies.
 * Only what lies behind the copy tells their stacks apart, and the innermost function, which is another one for each.
 */
#include "program.h"

#define MS INT64_C(1000000)
#define DEPTH 96

typedef void spin_fn(int64_t until_ns);

static NOINLINE void in_seven(int64_t until_ns)
{
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		NO_TAIL_CALL();
}

static NOINLINE void in_three(int64_t until_ns)
{
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		KEEP(until_ns);
}

static NOINLINE void down(unsigned depth, spin_fn *spin, int64_t until_ns)
{
	volatile char local[1024] = { 1 };

	if (depth)
		down(depth - 1, spin, until_ns);
	else
		spin(until_ns);
	KEEP(local[0]);
}

static NOINLINE void seven(int64_t from_ns)
{
	down(DEPTH, in_seven, from_ns + 7 * MS);
	NO_TAIL_CALL();
}

static NOINLINE void three(int64_t from_ns)
{
	down(DEPTH, in_three, from_ns + 3 * MS);
	NO_TAIL_CALL();
}

int main(void)
{
	int64_t at_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	bounded(120);
	ready();
	for (;; at_ns += 10 * MS) {
		seven(at_ns);
		three(at_ns + 7 * MS);
	}
}
