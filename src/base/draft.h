/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that a user asked for, written whole or not at all: under a name of its own beside the one
 * that was given, with mode 0600 (the umask may take more away), and renamed at the end. What it
 * replaces, and what it never does, is in base/output_file.h; that is checked at the beginning and
 * again before the rename, and a name that was free is taken only if it is free still.
 *
 * A character device or a FIFO that belongs to root or to us is written in place, and /dev/stdout,
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

/* Whatever is left after a failure goes away. Nothing to do after sf_draft_finish. */
void sf_draft_abandon(struct sf_draft *draft);

#endif
