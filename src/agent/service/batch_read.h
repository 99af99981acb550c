/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch reads: many small pieces of this process's memory are read in one request to the kernel, and kept until
 * sf_batch_read_forget. The unit is a line of the processor's cache. Ordinary code, one thread.
 */
#ifndef SF_AGENT_SERVICE_BATCH_READ_H
#define SF_AGENT_SERVICE_BATCH_READ_H

#include <sys/uio.h>

#include "frozen/memory/own_memory.h"

#define SF_BATCH_READ_LINE 64
#define SF_BATCH_READ_LINES 4096  /* what is wanted beyond these is not fetched */
#define SF_BATCH_READ_SLOTS 8192
#define SF_BATCH_READ_PIECES 512  /* in one request */

/* Large: some 320 KB, of which what is used is touched. All zero but for `access` is a good one. */
struct sf_batch_read {
	const struct sf_own_memory *access;
	uint32_t n, n_done;                /* lines that were wanted, and those of which it is known whether they can be read */
	uint32_t n_pieces;                 /* of the others, which lie behind one another */
	struct iovec pieces[SF_BATCH_READ_PIECES];
	uint16_t slots[SF_BATCH_READ_SLOTS];    /* a line's number from 1, by its start; 0: free */
	uint64_t starts[SF_BATCH_READ_LINES];
	uint8_t  bytes[SF_BATCH_READ_LINES][SF_BATCH_READ_LINE];
};

void sf_batch_read_forget(struct sf_batch_read *batch);

/* Adds these bytes to the next request. Any address. */
void sf_batch_read_want(struct sf_batch_read *batch, uint64_t addr, size_t size);

/* Reads all wanted bytes. The first piece that cannot be read ends the request. */
void sf_batch_read_all(struct sf_batch_read *batch);

/* All `size` bytes at addr if they were fetched, or false. */
bool sf_batch_read_at(const struct sf_batch_read *batch, void *ret, uint64_t addr, size_t size);

#endif
