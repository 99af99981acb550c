/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a folder, one after the other. Allocates nothing; ordinary code. Not by opendir(3): in the agent, what libc
 * allocates is the program's memory (agent/libc/heap.h).
 */
#ifndef SF_BASE_FOLDER_H
#define SF_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct sf_folder {
	int    fd;
	size_t at, end;                                    /* of the entries that were read */
	_Alignas(8) char entries[8192];
};

/* Opens the folder `path` in the folder `parent` (openat(2)). False: errno says why. */
bool sf_folder_open(struct sf_folder *ret, int parent, const char *path);
void sf_folder_close(struct sf_folder *folder);

static inline void sf_cleanup_folder(struct sf_folder *folder)
{
	sf_folder_close(folder);
}

/* The next name, valid until the next call, in no order and without "." and "..". NULL: the end, or an error. */
const char *sf_folder_next(struct sf_folder *folder);

#endif
