/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records: many writers, one reader, in memory that may be shared with another process. The agent's
 * handlers, sampler and service thread write what leaves the process; in stillframe the holding thread writes
 * what the walking thread reads. A writer never waits: where there is no room the record is lost, and counted.
 *
 * A record is reserved by one compare-and-swap of `head`, copied, and published by storing its size
 * last; the reader stops at the first record whose size is still 0, and zeroes what it has read. A
 * record never wraps around the end: a filler (type 0) stands there instead.
 *
 * The reader does not trust the memory, because the writers' program may have overwritten it. No
 * function here reads beyond the size that its caller gives, even if the header has a larger one.
 */
#ifndef SF_FROZEN_OUTPUT_OUTBOX_H
#define SF_FROZEN_OUTPUT_OUTBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The start of every record. `size` includes this header and is a multiple of 8. */
struct sf_record_header {
	uint32_t size;
	uint16_t type;  /* chosen by the writer, such as enum sf_stream_type; SF_OUTBOX_FILLER: no record */
	uint16_t reserved;
};

#define SF_OUTBOX_FILLER 0
#define SF_OUTBOX_MAGIC 0x584f4253u /* "SBOX" */

struct sf_outbox_header {
	uint32_t magic;
	uint32_t version;                    /* of the records: SF_STREAM_VERSION */
	uint64_t size;                       /* of the ring behind this header: a power of two */
	_Alignas(64) _Atomic uint64_t head;  /* the writers' */
	_Alignas(64) _Atomic uint64_t tail;  /* the reader's */
	_Alignas(64) _Atomic uint64_t lost;  /* records that found no room */
	_Alignas(64) uint8_t bytes[];
};

/* `memory`: zeroed, page aligned, sizeof(header) + ring_size bytes. */
struct sf_outbox_header *sf_outbox_init(void *memory, uint64_t ring_size, uint32_t version);

/*
 * Appends one record of header.size bytes (a multiple of 8; header included) made of up to
 * `n` pieces. False when there was no room: counted in `lost`. Signal-safe, any thread.
 */
struct sf_outbox_piece { const void *bytes; size_t size; };
bool sf_outbox_put(struct sf_outbox_header *box, uint16_t type,
		   const struct sf_outbox_piece *pieces, unsigned n);

/*
 * In two steps, for a record that is filled in place: room for `size` bytes behind the header, 8-byte aligned, or
 * NULL; then the first `size` of the `reserved` bytes are published. Type SF_OUTBOX_FILLER abandons the room. The
 * reader waits for an earlier reservation. Signal-safe, any thread.
 */
void *sf_outbox_reserve(struct sf_outbox_header *box, uint64_t size);
void sf_outbox_commit(struct sf_outbox_header *box, void *bytes, uint64_t reserved, uint16_t type,
		      uint64_t size);

/* Bytes that wait to be read. Signal-safe. */
uint64_t sf_outbox_used(const struct sf_outbox_header *box);

/*
 * The reader's side. `ring_size` is what the reader itself measured, not what the header says.
 * Copies the oldest record to `ret` (capacity bytes) and frees its room. 1: there was a record; 0: none
 * (yet); -1: the bytes cannot be a record, or it is larger than `capacity`; the reader must stop.
 */
int sf_outbox_get(struct sf_outbox_header *box, uint64_t ring_size, void *ret, size_t capacity);

/*
 * The reader's side where it trusts the memory: the oldest record, in place, or NULL when there is none; valid until
 * sf_outbox_release.
 */
const struct sf_record_header *sf_outbox_peek(struct sf_outbox_header *box);
void sf_outbox_release(struct sf_outbox_header *box);

#endif
