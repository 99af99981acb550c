/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU affinity: keeps a thread of the agent on the CPU on which the program's threads are sampled. A
 * hand-shake on one CPU costs two thread switches. A hand-shake with an idle CPU costs two
 * wake-ups of a CPU, ten to twenty times as much on a virtual machine (docs/benchmarks.md). On a busy
 * other CPU the agent's thread may have to wait for its turn.
 *
 * The waking thread migrates the sampler to its CPU (frozen/signal/wake_up.h). An agent thread that the
 * program's threads do not wake moves by itself to the CPU of the last ticks, as long as all of them
 * were on one CPU. Otherwise the kernel chooses its CPU. Both kinds of thread leave a CPU for a while
 * after they were scheduled late there, because a real-time thread may occupy it.
 *
 * Each thread of the agent has its own `struct sf_cpu_affinity`, and only that thread uses it.
 */
#ifndef SF_AGENT_HOST_CPU_AFFINITY_H
#define SF_AGENT_HOST_CPU_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/wake_up.h"

struct sf_cpu_affinity {
	struct sf_wake_up *wake_up; /* posted by the program's threads; NULL: they do not wake this thread */
	cpu_set_t allowed;   /* the CPUs without our change; updated, because the program may set the
			      * affinity of all its threads */
	cpu_set_t set;       /* the CPUs that we set, as the kernel returned them */
	int      cpu;        /* to which the thread moved by itself; -1: the kernel chooses */
	bool     late;       /* scheduled late, and still on that CPU */
	uint64_t due_ns;     /* when the thread was due to wake */
	uint64_t away_ns;    /* until then the thread keeps away from that CPU */
};

/* For the calling thread. A thread with a wake-up must call sf_cpu_affinity_end before it ends. */
void sf_cpu_affinity_init(struct sf_cpu_affinity *affinity, struct sf_wake_up *wake_up);
void sf_cpu_affinity_end(struct sf_cpu_affinity *affinity);

/*
 * Called by the thread before it sleeps until due_ns at most: changes its CPU affinity if needed.
 * Makes a system call only for a change.
 */
void sf_cpu_affinity_move(struct sf_cpu_affinity *affinity, uint64_t now_ns, uint64_t due_ns);

/* Called by the thread after it has woken: notes whether it was scheduled late. */
void sf_cpu_affinity_woke(struct sf_cpu_affinity *affinity, uint64_t now_ns);

#endif
