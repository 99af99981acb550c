/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample of a thread speaks for: all of its CPU time since the last one, and what it waited
 * for a CPU.
 *
 * A thread whose own clock rang is on a CPU, and weighs itself. One that was asked may have been
 * waiting for a CPU since before it was asked: then it stands where it was preempted, mostly behind
 * a system call, and that says nothing of where it used CPU time, which stays on its account. Only
 * the kernel's count of its waiting tells, in a file; and a file that the thread opened would take
 * the lowest free number from its program. So the sampler, which has descriptors of its own, weighs
 * those that it asked while they stand, or tells them how to. A wait that began when the sampler
 * woke is the sampler's doing.
 */
#ifndef SF_FROZEN_WEIGHT_H
#define SF_FROZEN_WEIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/seats.h"
#include "frozen/slot.h"

#define SF_TICKS_UNWEIGHED 0 /* in slot->ticks of a thread that was asked: who walks it weighs it */

struct sf_weight_taken {
	uint64_t cpu_ns, wall_ns;
	uint32_t ticks;            /* those that were asked for, also of a clock that backs off; at
				    * least 1 */
};

/*
 * All that it used up to where its clock stood at cpu_clock_ns. The thread's, or who holds it.
 * Signal-safe.
 */
struct sf_weight_taken sf_weigh(struct sf_seat *seat, uint64_t cpu_clock_ns);

/* Of a thread that waited for a CPU: its waiting only. The same. */
struct sf_weight_taken sf_weigh_waiting(struct sf_seat *seat);

/*
 * For who holds a thread that was asked and answered (slot->entered_ns): fills in what its sample
 * speaks for, where slot->cpu_ns is where its clock stood. Signal-safe.
 */
void sf_weigh_asked(struct sf_slot *slot, struct sf_seat *seat);

/*
 * The same where the thread walks itself: it asks the sampler how to weigh, and keeps its slot
 * meanwhile. Each side is signal-safe.
 *
 * The thread's: rings the bell, and waits at most twice patience_ns. SF_JUDGED_NOT: nobody came.
 */
enum sf_judged { SF_JUDGED_NOT, SF_JUDGED_ON_CPU, SF_JUDGED_WAITED };
enum sf_judged sf_weight_ask(struct sf_seat *seat, uint64_t entered_ns, struct sf_bell *bell,
			     uint64_t patience_ns);
/* The sampler's, of a thread that it asked: tells it, if it wants to know. */
void sf_weight_judge(struct sf_seat *seat, int32_t tid);

#endif
