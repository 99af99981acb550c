/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large memory straight from the kernel. malloc keeps what was freed: in the arena of the thread that allocated it, and
 * once a large piece was freed it takes later ones of that size from arenas, too (glibc: M_MMAP_THRESHOLD). Inside a
 * program, where each profile has new threads, that memory would be the program's for good. Not signal-safe.
 */
#ifndef SF_BASE_BLOCK_H
#define SF_BASE_BLOCK_H

#include <stddef.h>

/* Zeros, of which only the touched pages count; NULL: no memory. */
void *sf_block_new(size_t size);

/* NULL is fine. */
void sf_block_free(void *block);

#endif
