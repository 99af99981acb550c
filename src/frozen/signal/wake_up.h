/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake-up of a thread of the agent: a futex word that counts how often it was posted. One thread
 * sleeps on a wake-up; any thread may post it.
 *
 * The waking thread may migrate the sleeper to its own CPU. A thread that is about to wait in a
 * slot gives up that CPU in the next moment. On another CPU the sleeper would wait for a turn of
 * the scheduler if threads run there (milliseconds). An idle CPU would have to be woken first
 * (docs/benchmarks.md).
 */
#ifndef SF_FROZEN_SIGNAL_WAKE_UP_H
#define SF_FROZEN_SIGNAL_WAKE_UP_H

#include <stdatomic.h>
#include <stdint.h>

enum sf_sleeper_state {
	SF_SLEEPER_AWAKE,       /* ... or woken */
	SF_SLEEPER_ASLEEP,
	SF_SLEEPER_BEING_WOKEN, /* by a thread that may get no CPU meanwhile */
};

struct sf_wake_up {
	_Alignas(64) _Atomic uint32_t n_posts;
	_Atomic uint32_t asleep;     /* enum sf_sleeper_state */
	_Atomic int32_t  sleeper;    /* TID that the waking thread migrates to its own CPU; 0: off */
	_Atomic uint32_t bringing;   /* that CPU, plus one, before the migration; 0: none yet */
	_Atomic uint32_t brought_to; /* ... and after it. A thread may get no CPU between the two: then the sleeper
				      * is on the one or on the other */
};

/* All signal-safe. */

uint32_t sf_wake_up_count(const struct sf_wake_up *wake_up);

/*
 * Sleeps until the wake-up is posted, at most until `until_ns`. `heard`: the count of posts that were
 * served.
 */
void sf_wake_up_wait(struct sf_wake_up *wake_up, uint32_t heard, uint64_t until_ns);

/*
 * Wakes the sleeper. Only a post that finds it asleep makes system calls: the first one, and those that come before the first one
 * has woken it.
 */
void sf_wake_up_post(struct sf_wake_up *wake_up);

#endif
