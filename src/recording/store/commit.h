/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a transaction to a recording in one step, without any other file. A rollback journal beside
 * the recording would have a name at which other users can place a file.
 *
 * The pages that SQLite writes are collected here. Only sf_commit_sync writes them to the file:
 *   1. pages behind the end of the database go to their places; nothing refers to them yet
 *   2. pages that change are appended as a redo record (below); with its last byte the
 *      transaction is complete for every reader that looks for one
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

/*
 * The redo record: it makes the change of many pages of a recording a single step. The new pages are
 * first appended to the file, with a checksum. Then they are written to their places, and the record
 * is cut off. A file that ends with a whole record is read as if its pages were in their places
 * already. A record that is not whole is ignored.
 *
 * Layout, all numbers big-endian (as SQLite's): the pages, one behind another; their numbers
 * (32 bits each, ascending, the first is 1); the trailer, at the very end of the file:
 *
 *   offset  size
 *        0    16  "stillframe redo\0"
 *       16     8  size of the database without this record, in bytes
 *       24     4  how many pages
 *       28     4  size of a page: 4096
 *       32     8  checksum of page 1 as it is until it is changed in its place
 *       40     8  checksum of the record up to here
 *
 * Checksums are FNV-1a, 64 bits. They distinguish an unfinished record from a whole one, and do not
 * protect from an attacker. The record of a file from a stranger is used: it can only name pages of
 * that file.
 */
#define SF_REDO_TRAILER 48u
#define SF_REDO_MAX_PAGES (1u << 18) /* 1 GB */

/*
 * Looks for a whole record at the end of a file. *pages is emptied, and gets the pages of the record; none is no
 * error. *size_ret: of the database, in bytes.
 */
int sf_redo_find(int fd, struct sf_pages *pages, uint64_t *size_ret);

/* For tests that make up records: the checksum of what a file has from `start` up to `end`. */
bool sf_redo_checksum(int fd, uint64_t start, uint64_t end, uint64_t *ret);

#endif
