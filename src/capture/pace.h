/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the machine holding threads may take. Each hold is work on the CPUs that the program
 * runs on, and so is the walk that follows it: with several busy threads at a high rate they would
 * slow the program down by a third. So both together take at most a twentieth of what all CPUs
 * together have; beyond that ticks come later, and what they miss is in the weights. Short bursts are
 * let through.
 *
 * What is not holding is counted as far as it costs no more than holding: the rest is mostly the
 * reading of files, once, and no reason to stop for seconds.
 *
 * One per holding thread.
 */
#ifndef SF_CAPTURE_PACE_H
#define SF_CAPTURE_PACE_H

#include <stdint.h>

/* What the clocks show now: the time, the CPU time of the holding thread and of the process. */
struct sf_pace_clocks {
	uint64_t now_ns, holding_ns, all_ns;
};

struct sf_pace {
	unsigned n_cpus;
	struct sf_pace_clocks start;
	uint64_t before_ns, taken_ns;  /* at the last tick: the time, and what was counted */
	int64_t  debt_ns;        /* of CPU time, times SF_PACE_SHARE; below 0: saved up */
	uint64_t n_ticks, n_late;
};

#define SF_PACE_SHARE 20

void sf_pace_begin(struct sf_pace *pace, unsigned n_cpus, const struct sf_pace_clocks *clocks);

/* After a tick: when the next one may come that is wanted at next_ns. */
uint64_t sf_pace_next(struct sf_pace *pace, const struct sf_pace_clocks *clocks, uint64_t next_ns);

#endif
