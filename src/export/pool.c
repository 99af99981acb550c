/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroed memory for many small objects with the same lifetime. */
#include "export/pool.h"

#include <stdint.h>
#include <stdlib.h>

#define BLOCK_SIZE ((size_t)256 << 10)

struct sf_pool_block {
	struct sf_pool_block *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

static struct sf_pool_block *add_block(struct sf_pool *pool, size_t size)
{
	struct sf_pool_block *block;

	if (size < BLOCK_SIZE)
		size = BLOCK_SIZE;
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = size;
	block->next = pool->blocks;
	pool->blocks = block;
	return block;
}

void *sf_pool_take(struct sf_pool *pool, size_t n, size_t size)
{
	struct sf_pool_block *block = pool->blocks;
	size_t bytes, wanted;

	if (__builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, 15, &wanted) ||
	    wanted > SIZE_MAX / 2)
		return NULL;
	wanted &= ~(size_t)15;
	if (!block || block->size - block->used < wanted)
		block = add_block(pool, wanted);
	if (!block)
		return NULL;
	block->used += wanted;
	return block->bytes + block->used - wanted;
}

void sf_pool_deinit(struct sf_pool *pool)
{
	for (struct sf_pool_block *block = pool->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	pool->blocks = NULL;
}
