/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the machine holding threads may take. Each hold is work on the CPUs that the program
 * runs on, and so is the walk that follows it: with several busy threads at a high rate they would
 * slow the program down by a third. So both together take no more than a share of what all CPUs
 * together have; beyond that ticks come later, and what they miss is in the weights. Short bursts are
 * let through.
 *
 * While CPUs are idle, what we take is mostly taken from nobody, and the share is a twentieth. While none is, the
 * program waits for as long as we run, and it is a fiftieth.
 *
 * What is not holding is counted as far as it costs no more than holding: the rest is mostly the
 * reading of files, once, and no reason to stop for seconds. Nor is a tick that costs far more than
 * holding can, as where the machine below a virtual one has to find memory: it counts as two
 * milliseconds for each thread that was looked at.
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
	unsigned wanted;         /* percent of all CPUs, 0: as said above */
	unsigned share;          /* that it may take now, percent */
	struct sf_pace_clocks start;
	uint64_t before_ns, taken_ns;  /* at the last tick: the time, and what had been taken */
	uint64_t looked_ns, idle_ns;   /* at the last look at the machine: the time, and how long CPUs had been idle */
	int64_t  debt_ns;        /* of CPU time; below 0: saved up */
	uint64_t n_ticks;
	uint64_t late_ns;        /* by how much ticks were put off, all together ... */
	unsigned late_share;     /* ... and the share that the last one of these waited for */
};

#define SF_PACE_PERCENT 5       /* of all CPUs, while some are idle ... */
#define SF_PACE_BUSY_PERCENT 2  /* ... and while none is */
#define SF_PACE_LOOK_NS 250000000

/* `percent` 0: the two above. */
void sf_pace_begin(struct sf_pace *pace, unsigned n_cpus, unsigned percent,
		   const struct sf_pace_clocks *clocks);

/* Every SF_PACE_LOOK_NS: how long all CPUs together have been idle, ever (sf_idle_ns). */
void sf_pace_look(struct sf_pace *pace, uint64_t now_ns, uint64_t idle_ns);

/* After a tick that looked at so many threads: when the next one may come that is wanted at next_ns. */
uint64_t sf_pace_next(struct sf_pace *pace, const struct sf_pace_clocks *clocks, unsigned n_looked,
		      uint64_t next_ns);

#endif
