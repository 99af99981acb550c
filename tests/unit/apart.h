/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of one test on different CPUs: two that share one are hardly ever in the same call at once. */
#ifndef SF_TEST_APART_H
#define SF_TEST_APART_H

#include <sched.h>

/* Puts the calling thread on one of the CPUs that it may run on: threads with neighbouring numbers are apart. */
static inline void run_apart(unsigned number)
{
	cpu_set_t allowed, own;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	number %= (unsigned)CPU_COUNT(&allowed);
	CPU_ZERO(&own);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && number-- == 0)
			CPU_SET(cpu, &own);
	}
	sched_setaffinity(0, sizeof(own), &own);
}

#endif
