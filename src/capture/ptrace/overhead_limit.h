/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The overhead limit: the largest share of all CPUs that holding and walking may take. Each hold is work on the CPUs
 * that the program runs on, and so is the walk that follows it. With several busy threads at a high rate this work would
 * slow the program down by a third. Beyond the share, ticks come later, and the weights contain the time of the ticks
 * that were missed. Short bursts are let through.
 *
 * While CPUs are idle, holding and walking mostly use idle CPU time, and the share is a twentieth. While no CPU is idle,
 * the program waits for as long as holding and walking run, and the share is a fiftieth.
 *
 * Two costs are counted only in part. CPU time besides holding is counted up to the CPU time of holding: the rest is
 * mostly the reading of files, which happens once and is no reason to stop for seconds. A tick is counted as at most two
 * milliseconds for each thread that was looked at, and two more: holding cannot cost as much. Higher costs occur where
 * the host of a virtual machine has to find memory.
 *
 * Of the share, reading the stacks of sleeping threads may take a quarter. Threads that work for a moment and sleep
 * again have a new stack at each of these samples: without this limit a few hundred of them leave nothing for the
 * samples of what runs.
 *
 * One per holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_OVERHEAD_LIMIT_H
#define SF_CAPTURE_PTRACE_OVERHEAD_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Readings of three clocks: the time, the CPU time of the holding thread, and the CPU time of the process. */
struct sf_overhead_limit_clocks {
	uint64_t now_ns, holding_ns, all_ns;
};

struct sf_overhead_limit {
	unsigned n_cpus;
	unsigned wanted;         /* percent of all CPUs, 0: as said above */
	unsigned share;          /* that it may take now, percent */
	bool     is_half_idle;   /* the machine, between the last two looks at it */
	struct sf_overhead_limit_clocks start;
	uint64_t before_ns, taken_ns;  /* at the last tick: the time, and what had been taken */
	uint64_t looked_ns, idle_ns;   /* at the last look at the machine: the time, and how long CPUs had been idle */
	int64_t  debt_ns;        /* of CPU time; below 0: saved up */
	int64_t  asleep_debt_ns; /* the same, of what reading sleeping threads may take */
	uint64_t n_ticks;
	uint64_t late_ns;        /* by how much ticks were put off, all together ... */
	unsigned late_share;     /* ... and the share that the last one of these waited for */
};

#define SF_OVERHEAD_PERCENT 5       /* of all CPUs, while some are idle ... */
#define SF_OVERHEAD_BUSY_PERCENT 2  /* ... and while none is */
#define SF_OVERHEAD_LOOK_NS 250000000

/* `percent` 0: the two above. */
void sf_overhead_limit_begin(struct sf_overhead_limit *limit, unsigned n_cpus, unsigned percent,
		   const struct sf_overhead_limit_clocks *clocks);

/* CPU time that it allows for in so much time. */
static inline uint64_t sf_overhead_limit_allows(const struct sf_overhead_limit *limit, uint64_t ns)
{
	return ns * limit->n_cpus * limit->share / 100;
}

/* The stack of a sleeping thread was read, and that took so long. */
void sf_overhead_limit_read(struct sf_overhead_limit *limit, uint64_t cost_ns);

/* By how much the next such sample of a thread comes later than at its rate: until the debt is paid. */
uint64_t sf_overhead_limit_put_off(const struct sf_overhead_limit *limit);

/* Every SF_OVERHEAD_LOOK_NS: how long all CPUs together have been idle, ever (sf_idle_ns). */
void sf_overhead_limit_look(struct sf_overhead_limit *limit, uint64_t now_ns, uint64_t idle_ns);

/* After a tick that looked at so many threads: when the next one may come that is wanted at next_ns. */
uint64_t sf_overhead_limit_next(struct sf_overhead_limit *limit, const struct sf_overhead_limit_clocks *clocks, unsigned n_looked,
		      uint64_t next_ns);

#endif
