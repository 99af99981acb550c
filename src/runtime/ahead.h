/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What will be read soon, read beforehand: many pieces of memory in one request to the kernel cost little more than one.
 * To describe a place is to follow a chain of structures, each of which tells where the next one is; done for many places
 * step by step that is a handful of requests, and not a dozen for each.
 *
 * A hint and no more: what was not said, or could not be read, is read when it is wanted.
 */
#ifndef SF_RUNTIME_AHEAD_H
#define SF_RUNTIME_AHEAD_H

#include <stddef.h>
#include <stdint.h>

struct sf_ahead {
	void (*want)(void *arg, uint64_t addr, size_t size); /* any address, a bad one too */
	void (*fetch)(void *arg);                            /* all that was wanted since the last time */
	void *arg;
};

static inline void sf_ahead_want(const struct sf_ahead *ahead, uint64_t addr, size_t size)
{
	ahead->want(ahead->arg, addr, size);
}

static inline void sf_ahead_fetch(const struct sf_ahead *ahead)
{
	ahead->fetch(ahead->arg);
}

#endif
