/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks by which all SQLite programs share a database file (sqlite.org/lockingv3.html): ranges
 * of bytes behind its first gigabyte, so that sqlite3(1) can query a recording while it is written.
 *
 * They are locks of the open file and not of the process (F_OFD_SETLK): closing another descriptor
 * of the same file leaves them alone. On a file system without locks every request is granted.
 *
 * Private to src/recording. Returns SQLite's result codes.
 */
#ifndef SF_RECORDING_STORE_FILE_LOCK_H
#define SF_RECORDING_STORE_FILE_LOCK_H

#include <stdbool.h>

struct sf_file_lock {
	int fd;
	int level;      /* SQLITE_LOCK_... */
	bool read_only; /* a reader has SQLITE_LOCK_SHARED at most */
};

/* SQLITE_BUSY: another program is in the way, and the level stays, or is PENDING on the way up. */
int sf_file_lock_raise(struct sf_file_lock *lock, int level);

/* Down to SQLITE_LOCK_SHARED or SQLITE_LOCK_NONE. */
int sf_file_lock_lower(struct sf_file_lock *lock, int level);

/* Whether any program is about to write. */
int sf_file_lock_reserved(const struct sf_file_lock *lock, int *ret);

#endif
