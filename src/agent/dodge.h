/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread's timer meets it. A timer rings in the kernel's own tick: a thread that runs between two ticks, as one
 * does that is woken by them, is met by fewer than its share, or by none. So is by chance, now and then, one that runs
 * and waits as it comes; that needs no other clock, which would cost it four times as much (docs/benchmarks.md).
 */
#ifndef SF_AGENT_DODGE_H
#define SF_AGENT_DODGE_H

#include <stdbool.h>
#include <stdint.h>

struct sf_dodge {
	uint64_t cpu_ns, n_samples; /* when it was last judged */
	bool     was_seldom;        /* and how */
};

/* From now on. */
void sf_dodge_begin(struct sf_dodge *dodge, uint64_t cpu_ns, uint64_t n_samples);

/*
 * By its clock and its samples up to now, of which one was due for each period_ns of CPU time. True: other than by chance
 * it is met too seldom.
 */
bool sf_dodges(struct sf_dodge *dodge, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns);

#endif
