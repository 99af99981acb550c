/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory in lines, and keeps the lines. Signal-safe. */
#include <string.h>

#include "frozen/memory/hash.h"
#include "frozen/memory/line_cache.h"

#include "frozen/frozen.h"

#define NO_LINE 1u /* no line starts at an odd address */

void sf_line_cache_init(struct sf_line_cache *cache, void *memory, uint32_t line_size, uint32_t log2_lines)
{
	cache->line_size = line_size;
	cache->log2_line_size = (uint8_t)__builtin_ctz(line_size);
	cache->log2_lines = (uint8_t)log2_lines;
	cache->bytes = memory;
	cache->starts = (uint64_t *)(void *)(cache->bytes + ((size_t)line_size << log2_lines));
	for (size_t i = 0; i < (size_t)1 << log2_lines; i++)
		cache->starts[i] = NO_LINE;
}

/* The line that starts there, or NULL when it cannot be read. */
static const uint8_t *get_line(struct sf_line_cache *cache, uint64_t start)
{
	const uint64_t i = sf_hash(start >> cache->log2_line_size, cache->log2_lines);
	uint8_t *bytes = cache->bytes + (i << cache->log2_line_size);

	if (cache->starts[i] == start)
		return bytes;
	cache->starts[i] = NO_LINE;
	if (cache->read(cache->arg, bytes, start, cache->line_size) != cache->line_size)
		return NULL;
	cache->starts[i] = start;
	return bytes;
}

bool sf_line_cache_read(struct sf_line_cache *cache, void *ret, uint64_t addr, size_t size)
{
	uint8_t *to = ret;

	if (size > cache->line_size)
		return cache->read(cache->arg, ret, addr, size) == size;
	while (size > 0) {
		const uint64_t offset = addr & (cache->line_size - 1);
		const size_t left = cache->line_size - offset, n = size < left ? size : left;
		const uint8_t *line = get_line(cache, addr - offset);

		if (!line)
			return false;
		memcpy(to, line + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}
