/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU accounting: the weight of a sample is all CPU time of its thread since the last sample, and
 * its run-queue delay (the time for which the thread was runnable without a CPU).
 *
 * A thread whose own CPU clock expired is on a CPU, and computes its own weight. A requested thread
 * may have waited for a CPU since before the request. Its stack then shows where it was preempted,
 * mostly behind a system call, and not where it used CPU time. That CPU time stays on its account.
 *
 * Only a file of the kernel (schedstat) shows the run-queue delay. If the thread itself opened that
 * file, it would take the lowest free descriptor number from the program. The sampler has its own
 * descriptor table. So the sampler weighs a requested thread while it holds the thread, or answers
 * the thread that waits. It ignores run-queue delay that began as the sampler woke, because the
 * sampler caused that delay, and delay that began after the request. Between these two, a thread that
 * gave its CPU away stands behind a system call, too.
 */
#ifndef SF_FROZEN_SIGNAL_WEIGHT_H
#define SF_FROZEN_SIGNAL_WEIGHT_H

#include <stdint.h>

#include "frozen/signal/thread_table.h"
#include "frozen/signal/slot.h"

/* The longest wait for a CPU that is believed. What the kernel counts as a longer one, of a thread that slept before, was sleep. */
#define SF_LONGEST_WAIT_NS INT64_C(1000000000)

struct sf_weight_taken {
	uint64_t cpu_ns, wall_ns;
	uint32_t ticks;            /* of the configured period, also while the clock backs off; at
				    * least 1 */
};

/*
 * Takes all CPU time that the thread used up to cpu_clock_ns of its CPU clock. `period_ns` is the
 * configured period; 0: ticks are of the period of the thread's own clock. Called by the thread itself,
 * or by the holder of the thread. Signal-safe.
 */
struct sf_weight_taken sf_weigh(struct sf_thread_entry *entry, uint64_t cpu_clock_ns, uint64_t period_ns);

/* For a thread that waited for a CPU: takes its run-queue delay only. Callers as above. */
struct sf_weight_taken sf_weigh_waiting(struct sf_thread_entry *entry);

/*
 * Called by the sampler for a requested thread that it holds (since slot->entered_ns): computes the
 * slot's weight from slot->cpu_clock_ns. Signal-safe.
 */
void sf_weigh_requested(struct sf_slot *slot, struct sf_thread_entry *entry, uint64_t period_ns);

/*
 * The decision of the sampler about a requested thread that walks itself: whether the thread ran, or
 * waited for a CPU. The thread keeps its slot while it waits. Each side is signal-safe.
 *
 * The thread's side: posts the wake-up, and waits at most twice patience_ns. SF_WEIGHT_UNDECIDED: the
 * sampler did not decide in time.
 */
enum sf_weight_decision { SF_WEIGHT_UNDECIDED, SF_WEIGHT_RAN, SF_WEIGHT_WAITED };
enum sf_weight_decision sf_weight_wait(struct sf_thread_entry *entry, uint64_t entered_ns, struct sf_wake_up *wake_up,
			     uint64_t patience_ns);
/* The sampler's side: decides, if the thread waits for a decision. */
void sf_weight_decide(struct sf_thread_entry *entry, int32_t tid);

#endif
