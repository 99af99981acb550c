/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one's own process like any other: through the kernel, which refuses where a load would
 * crash. Nothing in a walk loads from an address of the target directly, but for code that a runtime never unmaps (sf_runtime_ops.loads), so
 * no handler for SIGSEGV is needed and nobody's is disturbed.
 *
 * Reads are made in large pieces that are kept (a stack is walked in one or two system calls).
 */
#ifndef SF_FROZEN_MEMORY_OWN_MEMORY_H
#define SF_FROZEN_MEMORY_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/memory/reader.h"
#include "frozen/output/record.h"
#include "frozen/still.h"
#include "frozen/unwind/walk.h"

/* How to ask the kernel: chosen once by sf_own_memory_probe, never changed while handlers may run. */
struct sf_own_memory {
	int32_t pid;
	int     mem_fd;   /* /proc/self/mem where process_vm_readv is refused; else -1 */
	bool    gathers;  /* process_vm_writev is not refused */
};

/* Finds out what works here. False when nothing does. Ordinary code. */
bool sf_own_memory_probe(struct sf_own_memory *ret);
void sf_own_memory_close(struct sf_own_memory *access);

/* Up to `size` bytes at addr, those before the first that cannot be read. Signal-safe. */
size_t sf_own_memory_read(const struct sf_own_memory *access, void *ret, uint64_t addr, size_t size);

/*
 * Many small pieces at once, behind one another, `size` bytes together: much cheaper than one after the other. Those
 * bytes before the first that cannot be read. Signal-safe.
 */
size_t sf_own_memory_gather(const struct sf_own_memory *access, void *ret, size_t size,
		      const struct iovec *pieces, unsigned n);

#define SF_OWN_MEMORY_LINES 32
#define SF_OWN_MEMORY_LINE 1024

/*
 * A cache of memory that was just read, for scattered reads such as code and a virtual machine's tables. A walk of
 * 30 managed frames reads some 18 different lines, and most of them more than once. The owner of the cache decides
 * when its content is too old. Large: not for a stack.
 */
struct sf_own_memory_lines {
	uint64_t starts[SF_OWN_MEMORY_LINES];
	uint8_t  bytes[SF_OWN_MEMORY_LINES][SF_OWN_MEMORY_LINE];
};

void sf_own_memory_lines_forget(struct sf_own_memory_lines *lines); /* also initialises. Signal-safe. */

/* All `size` bytes at addr, or false. Signal-safe; one reader at a time. */
bool sf_own_memory_lines_read(struct sf_own_memory_lines *lines, const struct sf_own_memory *access, void *ret,
			uint64_t addr, size_t size);

/*
 * The memory of one walk: a still, room for the frames, and the piece of memory that was read last.
 * Large objects are here and not on the stack, which may be small. One walk at a time. Ordinary code
 * creates and frees a workspace.
 */
struct sf_workspace {
	const struct sf_own_memory *access;
	struct sf_trace trace;
	struct sf_stream_frame *packed;      /* room for trace.capacity: the frames of a sample */
	struct sf_still still;               /* for callers without a still of their own */
	const struct sf_code_map *map;       /* of the walk under way */
	uint8_t *piece;
	size_t   piece_capacity;
	uint64_t piece_start, piece_size;
	uint64_t top;                        /* the highest stack address that walks of this thread have read so far */
	size_t   mapped_size;                /* of all of this */
	void *caches[SF_MAX_RUNTIMES];       /* of each runtime, NULL: none; set by the caller, not owned */
	void *scratch[SF_MAX_RUNTIMES];      /* of each runtime, SF_RUNTIME_SCRATCH bytes */
	struct sf_own_memory_lines lines;          /* the same */
};

/*
 * `piece_size`: the number of bytes that one read fetches, a multiple of 4096. NULL: no memory. The memory comes from mmap,
 * so the target's heap is not used.
 */
struct sf_workspace *sf_workspace_create(const struct sf_own_memory *access, uint32_t max_depth,
					 size_t piece_size);
void sf_workspace_destroy(struct sf_workspace *workspace); /* takes NULL */

/*
 * Walks a held thread of this process, or the calling thread from its signal context, into
 * workspace->trace. The caller sets still->regs, map, arch and tid; this function sets still->memory.
 * `still` may be workspace->still. Entries of workspace->caches are used instead of reads.
 * Signal-safe.
 */
enum sf_end sf_workspace_walk(struct sf_workspace *workspace, struct sf_still *still);

#endif
