/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text file, line by line, of any length. Ordinary code. Not by getline(3): in the agent, what libc allocates is the program's
 * memory (agent/libc/heap.h).
 */
#ifndef SF_BASE_LINES_H
#define SF_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct sf_lines {
	int    fd;             /* the caller's */
	char  *text;
	size_t start, end, room; /* what was read and not returned yet is text[start..end) */
	bool   is_last;          /* no more can be read */
};

/* The next line, without its newline: the caller may change it, until the next call. NULL: the end, an error, or no memory. */
char *sf_lines_next(struct sf_lines *lines);

void sf_lines_deinit(struct sf_lines *lines);

static inline void sf_cleanup_lines(struct sf_lines *lines)
{
	sf_lines_deinit(lines);
}

#endif
