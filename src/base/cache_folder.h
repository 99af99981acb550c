/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that stillframe keeps for later runs of the same user: $XDG_CACHE_HOME/stillframe/NAME/FILE (default ~/.cache).
 * Each kind of content has a folder of its own, whose name has the number of its format.
 *
 * A file is used only if it belongs to this user and no other user can write to it. Any other file is a miss and not an
 * error. The content may be damaged all the same: a caller that reads a file checks it.
 */
#ifndef SF_BASE_CACHE_FOLDER_H
#define SF_BASE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* With its end. */
#define SF_CACHE_NAME 96

/*
 * Reads the environment now; later calls use this result. Inside a program that is not ours, the environment may change while
 * another thread reads it, and a shell's getenv() is its own, for its own thread.
 */
void sf_cache_read_environment(void);

/* The descriptor of the folder NAME, which is made if it is missing; -1 if it cannot be had or is not safe. */
int sf_cache_folder_open(const char *name);

/* The descriptor of a file, and its size; the file counts as used now. -1: not there, or not to be trusted. */
int sf_cache_file_open(int folder, const char *name, size_t *size_ret);

/* Writes the pieces as one file: all of it or nothing, also if another process does the same. False: it is not there. */
bool sf_cache_file_put(int folder, const char *name, const struct iovec *pieces, size_t n);

/* Removes the files used least recently until the rest has at most `limit` bytes. */
void sf_cache_prune(int folder, uint64_t limit);

#endif
