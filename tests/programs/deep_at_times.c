/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread whose stack is 100 KiB deep for a part of its CPU time, in turns: in shallow(), then in deep(), and so on.
 *
 * deep_at_times [milliseconds in deep() [in shallow()]]: 10 and 30
 */
#include <string.h>
#include <time.h>

#include "program.h"

#define MS 1000000L
#define CALLS 100

static long used_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static double deep_ms, shallow_ms;

static NOINLINE void shallow(void)
{
	const long end_ns = used_ns() + (long)(shallow_ms * MS);

	while (used_ns() < end_ns)
		;
}

static NOINLINE void deep(void)
{
	const long end_ns = used_ns() + (long)(deep_ms * MS);

	while (used_ns() < end_ns)
		;
}

static NOINLINE void descend(int n)
{
	volatile char room[1024];

	memset((char *)room, n, sizeof(room));
	if (n)
		descend(n - 1);
	else
		deep();
	NO_TAIL_CALL();
	room[0]++;
}

int main(int argc, char **argv)
{
	deep_ms = argument(argc, argv, 1, 10);
	shallow_ms = argument(argc, argv, 2, 30);
	bounded(120);
	ready();
	for (;;) {
		shallow();
		descend(CALLS);
	}
}
