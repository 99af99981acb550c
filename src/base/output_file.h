/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: recordings, streams, exports. Other users may be able to write to the folder (/tmp).
 * A file that exists there already may therefore be a trap: a symbolic link, a hard link to an
 * important file, or a file that its owner will read.
 *
 * Output files contain names of functions, threads and files of the watched program. Only the owner
 * may read them (mode 0600; the umask may take away more).
 */
#ifndef SF_BASE_OUTPUT_FILE_H
#define SF_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Opens a regular file for reading and writing, without emptying it; makes it if it is missing. Refuses
 * a symbolic link, a file of another user, one that has a second name, and whatever is no regular
 * file. The descriptor is the caller's, and closes on exec. False leaves *ret as it was.
 */
bool sf_output_file_open(const char *path, int *ret, struct sf_error *err);

/* Whether a new file may take the place of what stands at `path`, by the same rules; nothing may. */
bool sf_output_file_check(const char *path, struct sf_error *err);

/*
 * A draft: an output file that is written whole or not at all. The bytes go to a temporary file beside the given
 * path, with mode 0600 (the umask may take more away). The temporary file is renamed at the end, and removed by a signal
 * that ends the program (leftovers.h). Which files may be replaced is checked at the beginning, and again before the
 * rename. A name that was free at the beginning is taken only if it is still free.
 *
 * A character device or a FIFO that belongs to root or to us is written in place. The paths /dev/stdout,
 * /dev/stderr and /dev/fd/N (also as /proc/self/fd/N) are our own descriptors, whatever they lead to.
 */
struct sf_draft {
	const char *path;       /* the caller's; outlives the draft */
	char *temporary;        /* NULL: written in place */
	bool was_free;          /* nothing stood at the path */
	FILE *file;             /* for the caller to write to */
};

/* sf_draft_abandon in any case but failure. */
bool sf_draft_open(struct sf_draft *draft, const char *path, struct sf_error *err);

/* Closes the file and puts it at its place. Errors of the last bytes show only here. */
bool sf_draft_finish(struct sf_draft *draft, struct sf_error *err);

/* Removes the temporary file after a failure. Does nothing after sf_draft_finish. */
void sf_draft_abandon(struct sf_draft *draft);

#endif
