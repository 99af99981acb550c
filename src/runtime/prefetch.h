/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetch: memory that will be needed soon is read in advance. A request to the kernel for many pieces of memory costs
 * little more than a request for one. To describe a managed frame, a runtime follows a chain of structures, each of
 * which contains the address of the next one. If this is done step by step for many frames together, it takes a few
 * requests for all frames, and not a dozen for each.
 *
 * A prefetch is only a hint. Memory that was not prefetched, or could not be, is read when it is needed.
 */
#ifndef SF_RUNTIME_PREFETCH_H
#define SF_RUNTIME_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

struct sf_prefetch {
	void (*want)(void *arg, uint64_t addr, size_t size); /* any address, a bad one too */
	void (*fetch)(void *arg);                            /* all that was wanted since the last time */
	void *arg;
};

static inline void sf_prefetch_want(const struct sf_prefetch *ahead, uint64_t addr, size_t size)
{
	ahead->want(ahead->arg, addr, size);
}

static inline void sf_prefetch_fetch(const struct sf_prefetch *ahead)
{
	ahead->fetch(ahead->arg);
}

#endif
