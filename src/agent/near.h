/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a thread of the agent's own on the CPU where the program's threads are sampled, as long as
 * that is one CPU. A hand-shake on one CPU is two switches between threads; with another CPU that
 * idles it is two wake-ups of a CPU, which cost ten to twenty times as much on a virtual machine
 * (docs/benchmarks.md). Where threads are sampled on several CPUs nothing is gained, and the thread
 * goes wherever the kernel puts it. So it does, too, when it got its turn late: what runs there
 * does not let it in (a real-time thread does not).
 *
 * Each thread has its own, and is the only one that uses it.
 */
#ifndef SF_AGENT_NEAR_H
#define SF_AGENT_NEAR_H

#include <sched.h>
#include <stdint.h>

struct sf_near {
	cpu_set_t allowed;   /* without us: kept up to date, as the program may change it for all
			      * its threads */
	cpu_set_t set;       /* by us, as the kernel gave it back */
	int      cpu;        /* where it was put; -1: wherever the kernel puts it */
	uint64_t due_ns;     /* when it wanted to wake */
	uint64_t away_ns;    /* it is near nobody until then */
};

/* Of the calling thread. */
void sf_near_init(struct sf_near *near);

/*
 * It is about to sleep until due_ns at most: it moves, if it must. A system call only where
 * something changes.
 */
void sf_near_move(struct sf_near *near, uint64_t now_ns, uint64_t due_ns);

/* It has woken. */
void sf_near_woke(struct sf_near *near, uint64_t now_ns);

#endif
