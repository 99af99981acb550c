/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many events there are for one sample. Rare events have a sample each. Where so many come that samples would be
 * too many, there is one for each N-th, and N becomes smaller again when they are rare again. Between two changes N is
 * the same for all threads, so a sample stands for exactly N events.
 *
 * A change costs some system calls for each thread and CPU. So the number falls only after a while, which is longer each time.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_PACE_H
#define SF_CAPTURE_PERF_PACE_H

#include <stdint.h>

struct sf_perf_pace {
	uint64_t least;          /* events for one sample, at the least */
	uint64_t most;           /* samples in a second */
	uint64_t n, since_ns;    /* samples since the last change, or look */
	uint64_t pause_ns;       /* before the number falls */
};

void sf_perf_pace_begin(struct sf_perf_pace *pace, uint64_t least, uint64_t most, uint64_t now_ns);

/* The number of events for one sample from now on, where it was `each` and n samples came since the last call. */
uint64_t sf_perf_pace_look(struct sf_perf_pace *pace, uint64_t each, uint64_t n, uint64_t now_ns);

#endif
