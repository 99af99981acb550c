/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a transaction to a recording in one step, with no file but the recording itself: a
 * rollback journal beside it would have a name that others can put a file under.
 *
 * What SQLite writes is collected here and reaches the file only with sf_commit_sync:
 *   1. pages behind the end of the database go to their places; nothing refers to them yet
 *   2. pages that change are appended as a redo record (redo.h); with its last byte the
 *      transaction is done, for whoever reads the file with redo.h
 *   3. they are changed in their places
 *   4. the record is cut off
 * So a kill -9 at any moment leaves the old state or the new one. A failure in 1 or 2 (disk full)
 * changes nothing. After one in 3 the transaction stands, and its rest is made up for before the
 * next one. A database of no pages has no old state: its pages are just written.
 *
 * The caller holds SQLite's exclusive lock during sf_commit_sync. Private to src/recording.
 * Returns SQLite's result codes; commit->error says more.
 */
#ifndef SF_RECORDING_COMMIT_H
#define SF_RECORDING_COMMIT_H

#include "recording/pages.h"

struct sf_commit {
	int fd;                /* the caller's */
	uint64_t size;         /* of the database in the file, in bytes */
	uint64_t new_size;     /* with what was collected */
	struct sf_pages pages; /* collected; or, if `logged`, not yet in their places */
	bool logged;           /* step 2 is done, step 3 is not */
	bool longer;           /* the file is longer than `size`: what is behind means nothing */
	bool failed;           /* what comes now is SQLite's rollback: it restores what is there */
	int error;             /* errno of the last failure */
};

int sf_commit_put(struct sf_commit *commit, uint32_t number, const void *data);
int sf_commit_truncate(struct sf_commit *commit, uint64_t size);
int sf_commit_sync(struct sf_commit *commit);

/* The transaction is over: what was collected and not synced is dropped. */
void sf_commit_drop(struct sf_commit *commit);

void sf_commit_deinit(struct sf_commit *commit);

#endif
