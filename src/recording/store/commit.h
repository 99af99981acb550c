/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a transaction to a recording in one step, without any other file. A rollback journal beside
 * the recording would have a name at which other users can place a file.
 *
 * The pages that SQLite writes are collected here. Only sf_commit_sync writes them to the file:
 *   1. pages behind the end of the database go to their places; nothing refers to them yet
 *   2. pages that change are appended as a redo record (redo.h); with its last byte the
 *      transaction is complete for every reader that uses redo.h
 *   3. the changed pages are written to their places
 *   4. the record is cut off
 *
 * A kill -9 at any moment therefore leaves the old state or the new one. A failure in 1 or 2 (disk
 * full) changes nothing. After a failure in 3 the transaction is valid, and the next call completes
 * it first. A database without pages has no old state: its pages are written directly.
 *
 * The caller holds SQLite's exclusive lock during sf_commit_sync. Private to src/recording.
 * Returns SQLite's result codes; commit->error says more.
 */
#ifndef SF_RECORDING_STORE_COMMIT_H
#define SF_RECORDING_STORE_COMMIT_H

#include "recording/store/pages.h"

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
