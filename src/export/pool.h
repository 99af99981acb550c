/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroed memory for many small things that die together. */
#ifndef SF_EXPORT_POOL_H
#define SF_EXPORT_POOL_H

#include <stddef.h>

struct sf_pool_block;

/* Zero is an empty pool. */
struct sf_pool {
	struct sf_pool_block *blocks;
};

/* `n` items of `size` bytes, 16-byte aligned, until deinit; NULL when memory ran out. */
void *sf_pool_take(struct sf_pool *pool, size_t n, size_t size);
void sf_pool_deinit(struct sf_pool *pool);

#endif
