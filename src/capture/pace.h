/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the machine holding threads may take. Each hold is work on the CPUs that the program
 * runs on: with several busy threads at a high rate it would slow the program down by a third. So
 * the thread that holds others takes at most a twentieth of what all CPUs together have, by its own
 * CPU clock; beyond that its ticks come later, and what they miss is in the weights. Short bursts
 * are let through.
 *
 * One per holding thread.
 */
#ifndef SF_CAPTURE_PACE_H
#define SF_CAPTURE_PACE_H

#include <stdint.h>

struct sf_pace {
	unsigned n_cpus;
	uint64_t before_ns, before_cpu_ns;
	int64_t  debt_ns;        /* of CPU time, times SF_PACE_SHARE; below 0: saved up */
	uint64_t n_ticks, n_late;
};

#define SF_PACE_SHARE 20

/* cpu_ns: what the calling thread's CPU clock shows now. */
void sf_pace_begin(struct sf_pace *pace, unsigned n_cpus, uint64_t now_ns, uint64_t cpu_ns);

/* After a tick: when the next one may come that is wanted at next_ns. */
uint64_t sf_pace_next(struct sf_pace *pace, uint64_t now_ns, uint64_t cpu_ns, uint64_t next_ns);

#endif
