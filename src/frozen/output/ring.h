/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring between the thread that holds others and the collector: variable-sized records, one
 * writer, one reader, no lock. When the ring is full, a reservation fails; no side waits.
 *
 * The writer reserves room, fills it in place (a stack is read from the target directly into the
 * ring) and commits the bytes that it used. Positions are byte counts that only grow. A record
 * never wraps around the end; a filler takes the rest of the ring instead. So a record of more than
 * half the ring may find no room even in an empty ring.
 */
#ifndef SF_FROZEN_OUTPUT_RING_H
#define SF_FROZEN_OUTPUT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_ring {
	uint8_t *bytes;             /* not owned; 8-byte aligned */
	size_t   size;              /* a power of two, at least 4096 */
	size_t   reserved;          /* bytes of the open reservation; owned by the writer */
	_Alignas(64) _Atomic uint64_t head; /* stored by the writer; its release pairs with the
					     * reader's acquire */
	_Alignas(64) _Atomic uint64_t tail; /* stored by the reader; its release pairs with the
					     * writer's acquire */
};

/* The start of every record. `size` includes this header and is a multiple of 8. */
struct sf_record_header {
	uint32_t size;
	uint16_t type;  /* chosen by the writer, such as enum sf_stream_type; 0: a filler, no record */
	uint16_t reserved;
};

void sf_ring_init(struct sf_ring *ring, void *bytes, size_t size);

/*
 * Room for a record of up to `size` bytes (header included), 8-byte aligned, or NULL when the
 * ring is too full. Writer only, one reservation at a time. Signal-safe.
 */
void *sf_ring_reserve(struct sf_ring *ring, size_t size);

/*
 * Publishes the first `size` bytes of the reservation, padded with zeros to a multiple of 8, and
 * writes the padded size into the header. A `size` of 0, or above the reservation, abandons the
 * reservation. Writer only. Signal-safe.
 */
void sf_ring_commit(struct sf_ring *ring, size_t size);

/* The oldest record, or NULL when there is none; valid until sf_ring_release. Reader only. */
const struct sf_record_header *sf_ring_peek(struct sf_ring *ring);
void sf_ring_release(struct sf_ring *ring);

#endif
