/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the targets of the signal engine (in_*.c) share besides program.h. They are ordinary programs that
 * know nothing of stillframe; some start it themselves when its library is loaded, through the
 * public functions, which are looked up so that the programs also run without it.
 */
#ifndef SF_TESTS_IN_PROGRAM_H
#define SF_TESTS_IN_PROGRAM_H

#include <dlfcn.h>
#include <string.h>

#include "program.h"

/* sf_profile_start(options) of the library that is loaded; -1 when there is none. */
static inline int agent_start(const char *options)
{
	int (*start)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "sf_profile_start");

	return start ? start(options) : -1;
}

static inline int agent_stop(void)
{
	int (*stop)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "sf_profile_stop");

	return stop ? stop() : -1;
}

/* Uses this much of the calling thread's CPU time. */
static inline __attribute__((always_inline)) void burn_ns(int64_t ns)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	do {
		for (volatile int i = 0; i < 500; i++)
			;
	} while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

/* What a call came to, in words that are the same in each run. */
static inline void say(const char *what, long result)
{
	printf("%s %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "ok");
}

#define SAY(call) say(#call, call)

#endif
