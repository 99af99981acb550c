/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's scheduling. A thread stands until the sampler gets its turn, so the sampler has to get it soon, and near the
 * thread. Only the sampler's thread calls these functions.
 */
#ifndef SF_AGENT_SAMPLER_SCHEDULING_H
#define SF_AGENT_SAMPLER_SCHEDULING_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/wake_up.h"

/*
 * Priority: the sampler goes before ordinary threads, and before every other thread that has a lower real-time priority than the
 * highest of the program's own.
 */
struct sf_priority {
	uint32_t own;        /* real-time priority of the sampler; 0: it is an ordinary thread */
	uint32_t highest;    /* of the threads that were seen in this round */
	uint32_t n_lower;    /* rounds since a thread with the sampler's priority was seen */
};

/* The calling thread becomes an ordinary one that is preferred. */
void sf_priority_init(struct sf_priority *priority);
/* A thread of the program that has run in this round. */
void sf_priority_see(struct sf_priority *priority, int32_t tid);
/* The round is over: the sampler takes the highest priority at once, and leaves it when no thread has shown it for long. */
void sf_priority_settle(struct sf_priority *priority);

/*
 * CPU affinity: lets the program's threads migrate the sampler to their CPU when they wake it
 * (frozen/signal/wake_up.h). A hand-shake on one CPU costs two thread switches. A hand-shake with an
 * idle CPU costs two wake-ups of a CPU, ten to twenty times as much on a virtual machine
 * (docs/benchmarks.md). On a busy other CPU the sampler may have to wait for its turn.
 *
 * The sampler leaves a CPU for a while after it was scheduled late there, because a real-time thread
 * may occupy that CPU.
 */
struct sf_cpu_affinity {
	struct sf_wake_up *wake_up; /* posted by the program's threads */
	cpu_set_t allowed;   /* the CPUs without our change; updated, because the program may set the
			      * affinity of all its threads */
	bool     late;       /* scheduled late, and still on that CPU */
	uint64_t due_ns;     /* when the thread was due to wake */
	uint64_t away_ns;    /* until then the thread keeps away from that CPU */
};

/* For the calling thread, which must call sf_cpu_affinity_end before it ends. */
void sf_cpu_affinity_init(struct sf_cpu_affinity *affinity, struct sf_wake_up *wake_up);
void sf_cpu_affinity_end(struct sf_cpu_affinity *affinity);

/*
 * Called by the thread before it sleeps until due_ns at most: allows the migration, or leaves the CPU
 * after a late wake-up. Makes a system call only for a change.
 */
void sf_cpu_affinity_move(struct sf_cpu_affinity *affinity, uint64_t now_ns, uint64_t due_ns);

/* Called by the thread after it has woken: notes whether it was scheduled late. */
void sf_cpu_affinity_woke(struct sf_cpu_affinity *affinity, uint64_t now_ns);

#endif
