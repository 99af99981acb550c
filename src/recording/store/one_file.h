/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite file system of exactly one file, which is open already.
 *
 * SQLite looks for files beside a database: a journal, which it rolls back and which may name
 * another file to be deleted; a write-ahead log and its index. Every user who may write to the folder
 * can place such files there. With this file system they do not exist: only the file behind the one descriptor
 * is ever read or written, no other is opened or removed, and the path is used for messages only.
 *
 * A reader never writes. A writer's transactions reach the file in one step (commit.h); SQLite's
 * journal, which is in memory, does not ensure this. A reader corrects the state that a killed writer
 * left (commit.h). SQLite's own locks keep other SQLite programs away; they are locks of the process, so
 * a process that writes a recording opens that file only through SQLite (sqlite.org/howtocorrupt.html, 2.2).
 *
 * Private to src/recording.
 */
#ifndef SF_RECORDING_STORE_ONE_FILE_H
#define SF_RECORDING_STORE_ONE_FILE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Opens a database; takes `fd` in any case, and sqlite3_close closes it. Temporary tables must be in
 * memory (PRAGMA temp_store), a writer's journal too. As sqlite3_open_v2, *ret is to be closed
 * even after a failure.
 */
int sf_one_file_open(int fd, bool writer, const char *path, sqlite3 **ret);

/* The database's descriptor; -1 if it was never opened. */
int sf_one_file_fd(sqlite3 *db);

/*
 * Whether a reader's file, in which a transaction has begun, is cut short: of its bytes only so many are there
 * (missing_pages.h).
 */
bool sf_one_file_is_cut(sqlite3 *db, uint64_t *there_ret, uint64_t *promised_ret);

#endif
