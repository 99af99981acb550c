/* SPDX-License-Identifier: Apache-2.0 */
/* A thread whose stack is 100 KiB deep for a quarter of its CPU time: 30 ms in shallow(), then 10 ms in deep(), and so on. */
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

static NOINLINE void shallow(void)
{
	const long end_ns = used_ns() + 30 * MS;

	while (used_ns() < end_ns)
		;
}

static NOINLINE void deep(void)
{
	const long end_ns = used_ns() + 10 * MS;

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

int main(void)
{
	bounded(120);
	ready();
	for (;;) {
		shallow();
		descend(CALLS);
	}
}
