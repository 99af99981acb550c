/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of a process's memory in lines of one size, for scattered reads such as code and a virtual machine's tables.
 * Each line has one place (direct-mapped). The owner of the cache decides when its content is too old. Signal-safe if
 * `read` is; one reader at a time.
 */
#ifndef SF_FROZEN_MEMORY_LINE_CACHE_H
#define SF_FROZEN_MEMORY_LINE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_line_cache {
	/* Reads up to `size` bytes at addr: returns the number of those before the first that cannot be read. */
	size_t (*read)(void *arg, void *ret, uint64_t addr, size_t size);
	void *arg;
	uint32_t line_size;   /* a power of two, at most a page: a line can be read whole or not at all */
	uint8_t log2_line_size, log2_lines;
	uint8_t *bytes;       /* of all lines; not owned, as below */
	uint64_t *starts;     /* the address of each line, or 1 */
};

/* Bytes of memory for so many lines. */
#define SF_LINE_CACHE_SIZE(line_size, log2_lines) (((line_size) + 8) << (log2_lines))

/* Empties the cache. `memory`: SF_LINE_CACHE_SIZE bytes, 8-byte aligned. `read` and `arg` stay. */
void sf_line_cache_init(struct sf_line_cache *cache, void *memory, uint32_t line_size, uint32_t log2_lines);

/* All `size` bytes at addr, or false. */
bool sf_line_cache_read(struct sf_line_cache *cache, void *ret, uint64_t addr, size_t size);

#endif
