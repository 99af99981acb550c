/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring between the thread that holds others and the collector: variable-sized records, one
 * writer, one reader, no lock. A full ring loses the record and counts it; nothing waits.
 *
 * The writer reserves room, fills it in place (a stack is read from the target straight into
 * it) and commits what it used. Positions are ever growing byte counts; a record never
 * wraps around the end: a filler stands there instead. So a record of more than half the ring may
 * find no room even in an empty one.
 */
#ifndef SF_FROZEN_RING_H
#define SF_FROZEN_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_ring {
	uint8_t *bytes;             /* not owned; 8-byte aligned */
	size_t   size;              /* a power of two, at least 4096 */
	size_t   reserved;          /* the writer's: bytes of the reservation under way */
	_Alignas(64) _Atomic uint64_t head; /* the writer's; release pairs with the reader's
					     * acquire */
	_Alignas(64) _Atomic uint64_t tail; /* the reader's; release pairs with the writer's
					     * acquire */
};

/* Every record starts so. `size` includes this header and is a multiple of 8. */
struct sf_record_header {
	uint32_t size;
	uint16_t type;  /* enum sf_record_type in record.h; 0 is filler, and no record's */
	uint16_t reserved;
};

void sf_ring_init(struct sf_ring *ring, void *bytes, size_t size);

/*
 * Room for a record of up to `size` bytes (header included), 8-byte aligned, or NULL when the
 * ring is too full. Writer only, one reservation at a time. Signal-safe.
 */
void *sf_ring_reserve(struct sf_ring *ring, size_t size);

/*
 * Publishes the first `size` bytes of the reservation, rounded up to 8 with zeros, and writes
 * that into the header's `size`; 0, or more than was reserved, abandons it. Signal-safe.
 */
void sf_ring_commit(struct sf_ring *ring, size_t size);

/* The oldest record, or NULL when there is none; valid until sf_ring_release. Reader only. */
const struct sf_record_header *sf_ring_peek(struct sf_ring *ring);
void sf_ring_release(struct sf_ring *ring);

#endif
