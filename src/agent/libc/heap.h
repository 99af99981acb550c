/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own malloc, in place of the program's: in the shared library all calls of malloc and its kin are calls of heap.c.
 * What libc allocates for its caller (getline(3), realpath(3)) is freed by no function of the library, so they are not used.
 */
#ifndef SF_AGENT_LIBC_HEAP_H
#define SF_AGENT_LIBC_HEAP_H

/* In a forked child, before its first allocation. Where another thread was allocating, the child begins a heap of its own. */
void sf_heap_after_fork_in_child(void);

#endif
