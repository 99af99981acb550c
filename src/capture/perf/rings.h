/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of one CPU, into which the kernel writes records of perf events (struct perf_event_mmap_page).
 *
 * A batch is what lay in the ring at its begin. Records are read in place; one that wraps around the end is put together in a
 * buffer. The kernel may write over a record only after the end of its batch. Where the ring is full the kernel drops records,
 * and says how many (PERF_RECORD_LOST).
 *
 * Every size is checked. A record that cannot be one is dropped and counted, with the rest of its batch.
 */
#ifndef SF_CAPTURE_PERF_RINGS_H
#define SF_CAPTURE_PERF_RINGS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_PERF_MAX_RECORD 65536u   /* a record's size has 16 bits */

struct sf_perf_ring {
	struct perf_event_mmap_page *page; /* not owned */
	const uint8_t *data;
	uint64_t size;        /* of data: a power of two */
	uint64_t head, next;  /* the end of the batch; the record to be read next */
	uint64_t n_broken;    /* batches whose end was dropped */
	uint8_t *joined;      /* of SF_PERF_MAX_RECORD bytes */
};

/* `mapping`: a page of state, and `size` bytes of data behind `page_size`. False: no memory. */
bool sf_perf_ring_init(struct sf_perf_ring *ring, void *mapping, size_t page_size, size_t size);
void sf_perf_ring_deinit(struct sf_perf_ring *ring);

/* Begins a batch. Bytes in it. */
uint64_t sf_perf_ring_begin(struct sf_perf_ring *ring);

/* Goes back to the first record of the batch. */
void sf_perf_ring_rewind(struct sf_perf_ring *ring);

/* The next record, 8-byte aligned, valid until sf_perf_ring_take(); NULL: the batch is read. */
const struct perf_event_header *sf_perf_ring_peek(struct sf_perf_ring *ring);
void sf_perf_ring_take(struct sf_perf_ring *ring);

/*
 * The record of this batch that lay at ring->next when it was read; valid until the next call for this ring. NULL:
 * there is none.
 */
const struct perf_event_header *sf_perf_ring_again(struct sf_perf_ring *ring, uint64_t place);

/* Ends the batch: the room of the records that were taken is the kernel's again. Those that were not are in the next batch. */
void sf_perf_ring_end(struct sf_perf_ring *ring);

#endif
