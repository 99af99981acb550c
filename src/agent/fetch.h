/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch reads: many small pieces of this process's memory are read in one request to the kernel, and kept until
 * sf_fetch_forget. The unit is a line of the processor's cache. Ordinary code, one thread.
 */
#ifndef SF_AGENT_FETCH_H
#define SF_AGENT_FETCH_H

#include <sys/uio.h>

#include "frozen/self.h"

#define SF_FETCH_LINE 64
#define SF_FETCH_LINES 4096  /* what is wanted beyond these is not fetched */
#define SF_FETCH_SLOTS 8192
#define SF_FETCH_PIECES 512  /* in one request */

/* Large: some 320 KB, of which what is used is touched. All zero but for `access` is a good one. */
struct sf_fetch {
	const struct sf_self_access *access;
	uint32_t n, n_done;                /* lines that were wanted, and those of which it is known whether they can be read */
	uint32_t n_pieces;                 /* of the others, which lie behind one another */
	struct iovec pieces[SF_FETCH_PIECES];
	uint16_t slots[SF_FETCH_SLOTS];    /* a line's number from 1, by its start; 0: free */
	uint64_t starts[SF_FETCH_LINES];
	uint8_t  bytes[SF_FETCH_LINES][SF_FETCH_LINE];
};

void sf_fetch_forget(struct sf_fetch *fetch);

/* Adds these bytes to the next request. Any address. */
void sf_fetch_want(struct sf_fetch *fetch, uint64_t addr, size_t size);

/* Reads all wanted bytes. The first piece that cannot be read ends the request. */
void sf_fetch_all(struct sf_fetch *fetch);

/* All `size` bytes at addr if they were fetched, or false. */
bool sf_fetch_read(const struct sf_fetch *fetch, void *ret, uint64_t addr, size_t size);

#endif
