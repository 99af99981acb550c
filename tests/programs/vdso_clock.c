/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for the time in a loop: most samples stand in the vDSO, code that is in no file.
 *
 * vdso_clock
 */
#include <sys/time.h>

#include "program.h"

static NOINLINE int64_t ask_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_nsec;
}

static NOINLINE int64_t ask_day(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return now.tv_usec;
}

int main(void)
{
	bounded(120);
	ready();
	for (;;) {
		for (int i = 0; i < 1000; i++)
			KEEP(ask_monotonic());
		for (int i = 0; i < 1000; i++)
			KEEP(ask_day());
	}
}
