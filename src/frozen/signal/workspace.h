/* SPDX-License-Identifier: Apache-2.0 */
/* The memory and the reader of one walk inside the process. Reads of the stack are made in large pieces that are kept. */
#ifndef SF_FROZEN_SIGNAL_WORKSPACE_H
#define SF_FROZEN_SIGNAL_WORKSPACE_H

#include "frozen/memory/own_memory.h"
#include "frozen/output/record.h"
#include "frozen/unwind/walk.h"

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
	const struct sf_window *copy;        /* of the stack, set by the caller: the thread has run on. NULL: it is held */
	uint8_t *piece;
	size_t   piece_capacity;
	uint64_t piece_start, piece_size;
	uint64_t top;                        /* the highest stack address that walks of this thread have read so far */
	size_t   mapped_size;                /* of all of this */
	void *caches[SF_MAX_RUNTIMES];       /* of each runtime, NULL: none; set by the caller, not owned */
	void *scratch[SF_MAX_RUNTIMES];      /* of each runtime, SF_RUNTIME_SCRATCH bytes */
	struct sf_own_memory_lines lines;    /* for scattered reads of the walk under way */
};

/*
 * `piece_size`: the number of bytes that one read fetches, a multiple of 4096. NULL: no memory. The memory comes from mmap,
 * so the target's heap is not used.
 */
struct sf_workspace *sf_workspace_create(const struct sf_own_memory *access, uint32_t max_depth,
					 size_t piece_size);
void sf_workspace_destroy(struct sf_workspace *workspace); /* takes NULL */

/*
 * Where a piece of a stack begins that is read for this address: a little below it, with the red zone of x86-64 (psABI, 3.2.2),
 * but never in another page, which may be the stack's guard. A piece that is shorter for that is as good. Signal-safe.
 */
uint64_t sf_workspace_piece_start(uint64_t addr);

/*
 * Walks a held thread of this process, the calling thread from its signal context, or a copied stack (workspace->copy), into
 * workspace->trace. The caller sets still->regs, map, arch and tid; this function sets still->memory.
 * `still` may be workspace->still. Entries of workspace->caches are used instead of reads.
 * Signal-safe.
 */
enum sf_end sf_workspace_walk(struct sf_workspace *workspace, struct sf_still *still);

#endif
