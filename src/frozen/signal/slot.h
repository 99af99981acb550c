/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-shake between a sampler thread and the threads that it holds, all of one process.
 *
 * A slot is one atomic word, (generation, state), and the fields that the thread fills in. A thread
 * enters a slot in one of two ways. The sampler requests the thread (REQUESTED, then a signal). Or
 * the thread's own CPU clock expires, and its signal handler claims a free slot.
 *
 *   sampler                               thread, in its signal handler
 *     FREE(g-1) -> REQUESTED(g)
 *     signal(tid, slot, g) ---------->    REQUESTED(g) -> ENTERING(g); fails: leave at once
 *                                    or   FREE(g-1) -> ENTERING(g): its own clock expired
 *                                         fill in regs, tid, times
 *                          <----------    HELD(g), post the wake-up
 *     HELD(g) -> WALKING(g)               wait while HELD(g) or WALKING(g)
 *     walk
 *     FREE(g), and in the end wake  ->    the word is anything else: leave
 *
 *     too late: REQUESTED(g) -> FREE(g)   too long: HELD(g) -> FREE(g), leave
 *
 * Every arrow with a state on both sides is one compare-and-swap, so exactly one side wins.
 * ENTERING belongs to the thread, WALKING to the sampler; both last for a bounded time. No message
 * says "I have left". A thread that wakes late sees another generation or state, and leaves,
 * even if the slot is in use for another sample by then. The first arrow of a late answer fails.
 * With the walk in the handler the thread keeps ENTERING while it walks itself, and goes from there
 * to FREE.
 *
 * model/handshake.pml is a model of this hand-shake; tests/unit/test_slot.c runs it with threads.
 * No side spins: a thread waits on the word, the sampler on the wake-up.
 */
#ifndef SF_FROZEN_SIGNAL_SLOT_H
#define SF_FROZEN_SIGNAL_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/arch.h"
#include "frozen/signal/wake_up.h"
#include "frozen/unwind/code_map.h"

enum sf_slot_state {
	SF_SLOT_FREE,
	SF_SLOT_REQUESTED,
	SF_SLOT_ENTERING,
	SF_SLOT_HELD,
	SF_SLOT_WALKING,
};

#define SF_SLOT_STATE_BITS 3
#define SF_SLOT_MAX_GENERATION (UINT32_MAX >> SF_SLOT_STATE_BITS) /* then from 0 again */

struct sf_slot {
	_Alignas(64) _Atomic uint32_t word;  /* generation << SF_SLOT_STATE_BITS | state */
	uint32_t number;                     /* in its set */

	/* Owned by the thread in ENTERING, by the sampler in WALKING, and by no thread otherwise. */
	int32_t  tid;
	uint32_t entry;                       /* number, see thread_table.h */
	uint64_t entered_ns;                 /* when the hold began */
	uint64_t tick_ns;                    /* CLOCK_MONOTONIC of the tick */
	bool     weighed;                    /* the weight is there; else cpu_clock_ns is, from which
					      * the sampler computes the weight (weight.h) */
	uint64_t cpu_clock_ns;               /* the thread's CPU clock at the tick */
	uint64_t cpu_ns, wall_ns;            /* the weight of the sample */
	uint32_t ticks;
	uint32_t label;
	struct sf_regs regs;
	const void *ucontext;                /* of the handler; valid only during a walk in the handler */

	/*
	 * The code map that a walk in this slot uses; NULL: none. The service thread does not free a
	 * map that a slot names.
	 */
	const struct sf_code_map *_Atomic map;

	/* For a walk in the handler; allocated before the first signal. */
	struct sf_workspace *workspace;
};

static inline uint32_t sf_slot_word(uint32_t generation, enum sf_slot_state state)
{
	return generation << SF_SLOT_STATE_BITS | (uint32_t)state;
}

static inline enum sf_slot_state sf_slot_state(uint32_t word)
{
	return (enum sf_slot_state)(word & ((1u << SF_SLOT_STATE_BITS) - 1));
}

static inline uint32_t sf_slot_generation(uint32_t word)
{
	return word >> SF_SLOT_STATE_BITS;
}

void sf_slot_init(struct sf_slot *slot, uint32_t number);

/* --- the sampler's side. All signal-safe. --- */

/* FREE -> REQUESTED; stores the next generation to *generation_ret. False: the slot is not free. */
bool sf_slot_request(struct sf_slot *slot, uint32_t *generation_ret);
/*
 * REQUESTED -> FREE. True: no thread can answer this request any more. False: a thread has answered;
 * it is HELD soon, or has left already.
 */
bool sf_slot_cancel(struct sf_slot *slot, uint32_t generation);
/* HELD -> WALKING: the fields are the sampler's until sf_slot_release. */
bool sf_slot_take(struct sf_slot *slot);
/*
 * WALKING -> FREE: releases the thread. A thread that does not sleep yet leaves at once. The caller
 * must call sf_slot_wake soon for a thread that sleeps on the word.
 */
void sf_slot_release(struct sf_slot *slot);
void sf_slot_wake(struct sf_slot *slot);

/* --- the thread's side. All signal-safe. --- */

/* REQUESTED -> ENTERING: answers the request of this generation; false: the answer is too late. */
bool sf_slot_answer(struct sf_slot *slot, uint32_t generation);
/* FREE -> ENTERING: claims one of `n` slots, searching from `hint` on; NULL: none is free. */
struct sf_slot *sf_slot_claim(struct sf_slot *slots, uint32_t n, uint32_t hint);
/* ENTERING -> FREE: the thread has walked itself, or makes no sample. */
void sf_slot_leave(struct sf_slot *slot);
/*
 * ENTERING -> HELD, posts the wake-up, and waits until the sampler releases the slot. False: the
 * sampler did not come within patience_ns; the thread has freed the slot, and no walk took place.
 */
bool sf_slot_stand(struct sf_slot *slot, struct sf_wake_up *wake_up, uint64_t patience_ns);

#endif
