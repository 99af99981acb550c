/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own memory, and what a forked child gets of it. fork() copies the page tables of what a child gets, and
 * later each page that either process writes. Most of the agent's memory means nothing in a child, which has none of
 * its threads.
 */
#ifndef SF_AGENT_LIBC_FORK_MEMORY_H
#define SF_AGENT_LIBC_FORK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum sf_in_child {
	SF_COPIED,   /* what the parent has */
	SF_WIPED,    /* zeroes: for what a handler or a call of the program may still look at */
	SF_NOT_THERE, /* nothing: only for what the agent's own threads use */
};

/* Zeroed pages of this process alone; munmap() gives them back. NULL: no memory. */
void *sf_map_own(size_t size, enum sf_in_child in_child);

/* Changes that of pages that are mapped. False: they stay as they were; Linux before 4.14 wipes nothing. */
bool sf_set_in_child(void *pages, size_t size, enum sf_in_child in_child);

#endif
