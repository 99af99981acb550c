/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in code that a runtime made: what their names are only the process itself can
 * tell, and only for a while. A frame of such code leaves the process as a key; the first time
 * that a key is met the frame is put into a queue for ordinary code (agent/keep_runtimes.c), which
 * describes it soon.
 *
 * Nobody waits: where the queue is full the frame is put there when it is met again; where the
 * set of keys is full it is never described, and counted.
 */
#ifndef SF_FROZEN_PLACES_H
#define SF_FROZEN_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/outbox.h"
#include "frozen/walk.h"

struct sf_places {
	uint64_t seed;                     /* of the keys: those of two profiles differ */
	_Atomic uint64_t *keys;            /* that were put into the queue; 0: free */
	uint32_t n_keys;                   /* a power of two */
	struct sf_outbox_header *queue;    /* of struct sf_place_wanted */
	_Atomic uint64_t n_untold;         /* frames that found no room in the set */
};

#define SF_PLACE_WANTED 1              /* type of the records in the queue */

struct sf_place_wanted {
	struct sf_record_header header;
	uint64_t key;
	struct sf_frame frame;
};

/*
 * The key of a managed frame (sf_kind_is_managed): the same for the same place, and for no other
 * (by all odds of 64 bits). Never 0. Signal-safe.
 */
uint64_t sf_place_key(uint64_t seed, const struct sf_frame *frame);

/*
 * In two steps, so that the keys of a stack, which lie all over the set, are fetched side by side: the key that the frame
 * has there; then the frame is queued, if its key has not been met yet. Signal-safe, any thread.
 */
uint64_t sf_places_key(const struct sf_places *places, const struct sf_frame *frame);
void sf_places_meet(struct sf_places *places, const struct sf_frame *frame, uint64_t key);

#endif
