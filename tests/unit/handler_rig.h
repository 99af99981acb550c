/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stillframe inside a test program: sf_handler set up with a map of the program's own code, slots, entries and an
 * outbox; timers that ring for a thread; and what came out of the outbox. One at a time.
 */
#ifndef SF_TESTS_UNIT_INSIDE_RIG_H
#define SF_TESTS_UNIT_INSIDE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/handler.h"

#define SF_RIG_SIGNAL SIGPROF
#define SF_RIG_SLOTS 4
#define SF_RIG_MAX_SERIAL 32
#define SF_RIG_PATIENCE_NS UINT64_C(60000000000) /* a sampler that is short of CPU time comes, too */

/* By the serial of a thread; [0] is of all. */
struct sf_rig_sums {
	uint64_t n_samples, n_losses[SF_N_LOSSES];
	uint64_t cpu_ns, wall_ns, ticks; /* of samples and losses */
	uint64_t n_frames, n_roots, max_hold_ns;
};

extern struct sf_rig_sums sf_rig_sums[SF_RIG_MAX_SERIAL];

/* False: something could not be had. Everything is as new afterwards. */
bool sf_rig_start(enum sf_handler_mode mode, uint64_t ring_size);
void sf_rig_stop(void);

/* The calling thread gets an entry with this serial, and its timer, if period_ns is not 0. */
struct sf_thread_entry *sf_rig_enter(uint32_t serial, uint64_t period_ns);
void sf_rig_leave(struct sf_thread_entry *entry);

/* Tells those that were asked, and walk themselves, how to weigh. */
void sf_rig_judge(void);
/*
 * The same, and walks whoever stands, once; waits up to wait_ns for the wake-up. For a thread in which the signal is
 * blocked.
 */
void sf_rig_sample(struct sf_workspace *workspace, uint64_t wait_ns);
struct sf_workspace *sf_rig_workspace(void);

/* Empties the outbox into sf_rig_sums. */
void sf_rig_drain(void);

#endif
