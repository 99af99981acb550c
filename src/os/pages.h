/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading another process's stacks without waiting for their pages. A page that is not in memory is fetched when it is
 * read, also from outside: from a FUSE or network file system, or by whoever serves a userfaultfd. That may take for ever,
 * and no signal but SIGKILL ends the wait, while the thread whose stack it is stands. So what is not there is not read.
 *
 * A process can take a page away between the look and the read. Then the read waits after all: see os/own_thread.h.
 *
 * Linux: /proc/PID/pagemap; where that cannot be had memory is read as it is. One thread at a time. Signal-safe: nothing
 * allocates; files stay open from the first read on.
 */
#ifndef SF_OS_PAGES_H
#define SF_OS_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_PAGES_OPEN 8

struct sf_pages {
	struct {
		int32_t pid;     /* 0: no file */
		int fd;
	} open[SF_PAGES_OPEN];   /* by pid; a few processes at a time */
};

/* Zeroed memory is a struct sf_pages that has read nothing. */
void sf_pages_close(struct sf_pages *pages);

/*
 * Reads at most `size` bytes at `addr`, of the process `pid`, through its thread `tid`, and returns their number. They
 * end before the first byte behind which nothing is there. Pages in between that are not in memory are zeros, like a
 * stack page that was never touched. Pages that were swapped out are fetched.
 */
size_t sf_pages_read(struct sf_pages *pages, int32_t pid, int32_t tid, void *ret, uint64_t addr, size_t size);

/* Where a stack lies. */
struct sf_pages_stack {
	uint64_t sp;             /* an address in it: given */
	uint64_t start, end;     /* of its mapping; both 0: nothing is mapped there */
	bool     is_plain;       /* private memory without a file, whose pages the kernel alone fills: no read of it waits */
};

/*
 * Finds the mappings of stacks of a process, by the id of one of its threads. The function reads /proc/PID/smaps, whose
 * cost grows with the memory of the process: 5 ms for 800 mappings of .NET.
 */
void sf_pages_find_stacks(int32_t tid, struct sf_pages_stack *stacks, size_t n);

/*
 * The kernel's copy of a stack ends at the first page that was never touched: in a large array, for example, of which a
 * function has used little. This function puts pages of zeros there, from `addr` up to `end`, as a read by the program
 * itself would; 64 pages at the most. The memory must be plain (struct sf_pages_stack). False: not all of it is there.
 */
bool sf_pages_fill(int32_t tid, uint64_t addr, uint64_t end);

#endif
