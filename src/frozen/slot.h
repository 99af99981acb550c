/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-shake between a sampler thread and the threads that it holds, all of one process.
 *
 * A slot is one atomic word, (generation, state), and what the thread leaves there. It is entered
 * in one of two ways: the sampler asks for a thread (REQUESTED, then a signal), or a thread whose
 * own clock has rung takes a free slot by itself.
 *
 *   sampler                               thread, in its signal handler
 *     FREE(g-1) -> REQUESTED(g)
 *     signal(tid, slot, g) ---------->    REQUESTED(g) -> ENTERING(g); fails: leave at once
 *                                    or   FREE(g-1) -> ENTERING(g): its own clock rang
 *                                         fill in regs, tid, times
 *                          <----------    HELD(g), ring the bell
 *     HELD(g) -> WALKING(g)               wait while HELD(g) or WALKING(g)
 *     walk
 *     FREE(g), and in the end wake  ->    the word is anything else: leave
 *
 *     too late: REQUESTED(g) -> FREE(g)   too long: HELD(g) -> FREE(g), leave
 *
 * Every arrow with a state on both sides is one compare-and-swap, so exactly one side wins.
 * ENTERING belongs to the thread, WALKING to the sampler; both last for a bounded time. No message
 * says "I have left": a thread that wakes late sees another generation or state, and leaves,
 * whatever the slot is used for by then; and an answer that comes late fails its first arrow. With
 * the walk in the handler the thread keeps ENTERING while it walks itself, and goes from there to
 * FREE.
 *
 * model/handshake.pml is a model of exactly this; tests/unit/test_slot.c runs it with threads.
 * Nobody spins: a thread waits on the word, the sampler on the bell.
 */
#ifndef SF_FROZEN_SLOT_H
#define SF_FROZEN_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/arch.h"
#include "frozen/bell.h"
#include "frozen/code_map.h"

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

	/* The thread's in ENTERING, the sampler's in WALKING; nobody's otherwise. */
	int32_t  tid;
	uint32_t seat;                       /* number, see seats.h */
	uint64_t entered_ns;                 /* when it began to be held */
	uint64_t tick_ns;                    /* CLOCK_MONOTONIC of the tick */
	uint64_t cpu_ns, wall_ns;            /* what the sample speaks for */
	uint32_t ticks;
	uint32_t label;
	struct sf_regs regs;
	const void *ucontext;                /* of the handler: for a walk in it, and no longer */

	/*
	 * The code map that a walk in this slot uses: who frees maps looks here first. NULL: none.
	 */
	const struct sf_code_map *_Atomic map;

	/* Made beforehand, for a walk in the handler. */
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

/* FREE -> REQUESTED of the next generation, which is given back; false when it is not free. */
bool sf_slot_request(struct sf_slot *slot, uint32_t *generation_ret);
/* True: nobody will enter any more. False: somebody has, and will be HELD (or has left again). */
bool sf_slot_cancel(struct sf_slot *slot, uint32_t generation);
/* HELD -> WALKING: the fields are the sampler's until sf_slot_release. */
bool sf_slot_take(struct sf_slot *slot);
/*
 * WALKING -> FREE: the thread may go, and does if it does not sleep yet. sf_slot_wake is owed to it,
 * soon.
 */
void sf_slot_release(struct sf_slot *slot);
void sf_slot_wake(struct sf_slot *slot);

/* --- the thread's side. All signal-safe. --- */

/* It answers a request of this generation; false: it came too late. */
bool sf_slot_answer(struct sf_slot *slot, uint32_t generation);
/* It takes a free slot of `n`, NULL when there is none. Starts looking at `hint`. */
struct sf_slot *sf_slot_claim(struct sf_slot *slots, uint32_t n, uint32_t hint);
/* ENTERING -> FREE: it has walked itself, or has nothing to say. */
void sf_slot_leave(struct sf_slot *slot);
/*
 * ENTERING -> HELD, rings the bell, and waits to be let go. False when nobody came within
 * patience_ns: it has let itself go, and no walk took place.
 */
bool sf_slot_stand(struct sf_slot *slot, struct sf_bell *bell, uint64_t patience_ns);

#endif
