/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of the agent's own sleeps on until somebody needs it: a word that counts the rings.
 * One thread sleeps on a bell, any thread rings it.
 *
 * Who rings may bring the sleeper along to its own CPU. A thread that stands gives that CPU away
 * in the next moment; on another one the sleeper would wait for a turn of the scheduler where
 * threads run (milliseconds), or that CPU would have to be woken (docs/benchmarks.md).
 */
#ifndef SF_FROZEN_BELL_H
#define SF_FROZEN_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct sf_bell {
	_Alignas(64) _Atomic uint32_t rings;
	_Atomic uint32_t asleep;
	_Atomic int32_t  sleeper;    /* the thread that who rings brings along; 0: nobody is */
	_Atomic uint32_t brought_to; /* the CPU, plus one; 0: none. A hint: who may not be moved is
				      * not there */
};

/* All signal-safe. */

uint32_t sf_bell_rings(const struct sf_bell *bell);

/*
 * Sleeps until the bell rings, at most until `until_ns`. `heard`: the count of rings that were
 * served.
 */
void sf_bell_wait(struct sf_bell *bell, uint32_t heard, uint64_t until_ns);

/* Wakes the sleeper: a system call only where it sleeps, and only by the first who rings. */
void sf_bell_ring(struct sf_bell *bell);

#endif
