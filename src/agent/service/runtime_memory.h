/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of this process's runtimes, as the service thread reads it: what was read is kept until it is to be forgotten.
 * Ordinary code, the service thread.
 */
#ifndef SF_AGENT_SERVICE_RUNTIME_MEMORY_H
#define SF_AGENT_SERVICE_RUNTIME_MEMORY_H

#include <sys/uio.h>

#include "frozen/memory/own_memory.h"
#include "frozen/still.h"
#include "runtime/prefetch.h"
#include "target/process.h"

struct sf_runtime_memory;

/* `process`: this process, with its runtimes; it outlives the memory. NULL: no memory. */
struct sf_runtime_memory *sf_runtime_memory_create(const struct sf_process *process);
void sf_runtime_memory_destroy(struct sf_runtime_memory *memory); /* takes NULL */

/* All that was read before is too old now. `memory`: a struct sf_runtime_memory. */
void sf_runtime_memory_forget(void *memory);

/* Both are valid as long as the memory. */
struct sf_reader sf_runtime_memory_reader(struct sf_runtime_memory *memory);
struct sf_prefetch sf_runtime_memory_prefetch(struct sf_runtime_memory *memory);

/*
 * Batch reads: many small pieces of this process's memory are read in one request to the kernel, and kept until
 * sf_batch_read_forget. The unit is a line of the processor's cache. Only runtime_memory.c uses them; they are here for their
 * test.
 */

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
