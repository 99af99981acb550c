/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a thread of the agent's own on the CPU where the program's threads are sampled. A
 * hand-shake on one CPU is two switches between threads; with another CPU that idles it is two
 * wake-ups of a CPU, which cost ten to twenty times as much on a virtual machine
 * (docs/benchmarks.md); with another one that is busy it may be a wait for its turn.
 *
 * A thread that the program's threads ring for is brought along by them (frozen/bell.h). Any other
 * one goes where the last ticks were, as long as that is one CPU, and wherever the kernel puts it
 * otherwise. Both stay away from a CPU for a while where they got their turn late: what runs there
 * does not let them in (a real-time thread does not).
 *
 * Each thread has its own, and is the only one that uses it.
 */
#ifndef SF_AGENT_NEAR_H
#define SF_AGENT_NEAR_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/bell.h"

struct sf_near {
	struct sf_bell *bell; /* the program's threads ring it; NULL: they do not */
	cpu_set_t allowed;   /* without us: kept up to date, as the program may change it for all
			      * its threads */
	cpu_set_t set;       /* by us, as the kernel gave it back */
	int      cpu;        /* where it was put by itself; -1: wherever the kernel puts it */
	bool     late;       /* it was let in late, and is still there */
	uint64_t due_ns;     /* when it wanted to wake */
	uint64_t away_ns;    /* it is near nobody until then */
};

/* Of the calling thread. sf_near_end in it, if it has a bell. */
void sf_near_init(struct sf_near *near, struct sf_bell *bell);
void sf_near_end(struct sf_near *near);

/*
 * It is about to sleep until due_ns at most: it moves, if it must. A system call only where
 * something changes.
 */
void sf_near_move(struct sf_near *near, uint64_t now_ns, uint64_t due_ns);

/* It has woken. */
void sf_near_woke(struct sf_near *near, uint64_t now_ns);

#endif
