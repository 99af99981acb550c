/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output file that is written whole or not at all. The bytes go to a temporary file beside the given
 * path, with mode 0600 (the umask may take more away). The temporary file is renamed at the end.
 *
 * base/output_file.h lists the files that may be replaced. This rule is checked at the beginning and
 * again before the rename. A name that was free at the beginning is taken only if it is still free.
 *
 * A character device or a FIFO that belongs to root or to us is written in place. The paths /dev/stdout,
 * /dev/stderr and /dev/fd/N (also as /proc/self/fd/N) are our own descriptors, whatever they lead to.
 *
 * Not signal-safe.
 */
#ifndef SF_BASE_DRAFT_H
#define SF_BASE_DRAFT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

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
