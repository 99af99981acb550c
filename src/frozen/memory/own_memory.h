/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the own process's memory like another process's: through the kernel, which refuses where a load would crash.
 * A walk loads directly only from code that a runtime never unmaps (sf_runtime_ops.loads). So stillframe needs no handler
 * for SIGSEGV, and the program's own is not disturbed.
 */
#ifndef SF_FROZEN_MEMORY_OWN_MEMORY_H
#define SF_FROZEN_MEMORY_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/memory/line_cache.h"

struct iovec;

/* The system calls that work here: chosen once by sf_own_memory_probe, never changed while handlers may run. */
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

#define SF_OWN_MEMORY_LOG2_LINES 5
#define SF_OWN_MEMORY_LINE 1024u

/* A line cache of this memory. A walk of 30 managed frames reads some 18 different lines. Large: not for a stack. */
struct sf_own_memory_lines {
	struct sf_line_cache cache;
	uint64_t memory[SF_LINE_CACHE_SIZE(SF_OWN_MEMORY_LINE, SF_OWN_MEMORY_LOG2_LINES) / 8];
};

void sf_own_memory_lines_init(struct sf_own_memory_lines *lines, const struct sf_own_memory *access); /* empties it, too. Signal-safe. */

#endif
