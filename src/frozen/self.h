/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one's own process like any other: through the kernel, which refuses where a load would
 * crash. Nothing in a walk loads from an address of the target directly, so no handler for
 * SIGSEGV is needed and nobody's is disturbed.
 *
 * Reads are made in large pieces that are kept (a stack is walked in one or two system calls).
 */
#ifndef SF_FROZEN_SELF_H
#define SF_FROZEN_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/reader.h"
#include "frozen/record.h"
#include "frozen/still.h"
#include "frozen/walk.h"

/* How to ask the kernel: chosen once by sf_self_probe, never changed while handlers may run. */
struct sf_self_access {
	int32_t pid;
	int     mem_fd;   /* /proc/self/mem where process_vm_readv is refused; else -1 */
};

/* Finds out what works here. False when nothing does. Ordinary code. */
bool sf_self_probe(struct sf_self_access *ret);
void sf_self_close(struct sf_self_access *access);

/* Up to `size` bytes at addr, those before the first that cannot be read. Signal-safe. */
size_t sf_self_read(const struct sf_self_access *access, void *ret, uint64_t addr, size_t size);

#define SF_SELF_LINES 8
#define SF_SELF_LINE 512

/* Bytes that were read a moment ago. */
struct sf_self_line {
	uint64_t start, size;
	uint8_t bytes[SF_SELF_LINE];
};

/*
 * What one walk needs: a still, room for the frames, and for the piece of memory read last. What is
 * large is here and not on the stack, which may be a small one. One walk at a time. Made and freed
 * by ordinary code.
 */
struct sf_workspace {
	const struct sf_self_access *access;
	struct sf_trace trace;
	struct sf_stream_frame *packed;      /* room for trace.capacity: the frames of a sample */
	struct sf_still still;               /* for whoever has none of his own */
	const struct sf_code_map *map;       /* of the walk under way */
	uint8_t *piece;
	size_t   piece_capacity;
	uint64_t piece_start, piece_size;
	struct sf_self_line lines[SF_SELF_LINES]; /* of what lies here and there */
	uint32_t next_line;                  /* to be replaced */
	size_t   mapped_size;                /* of all of this */
};

/* piece_size: a multiple of 4096. NULL: no memory. By mmap, so the target's heap is not used. */
struct sf_workspace *sf_workspace_create(const struct sf_self_access *access, uint32_t max_depth,
					 size_t piece_size);
void sf_workspace_destroy(struct sf_workspace *workspace); /* takes NULL */

/*
 * Walks a thread of this process that stands (or the calling one, from its signal context) into
 * workspace->trace. still->regs, map, arch and tid are given; its memory is set here. `still` may
 * be workspace->still. Signal-safe.
 */
enum sf_end sf_workspace_walk(struct sf_workspace *workspace, struct sf_still *still);

#endif
