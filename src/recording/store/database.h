/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite with the manners of this project: errors go into a struct sf_error with the file's
 * name in them, and a row is written from an array of cells. Private to src/recording.
 */
#ifndef SF_RECORDING_STORE_DATABASE_H
#define SF_RECORDING_STORE_DATABASE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

SF_DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
SF_DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/*
 * Opens a file and nothing beside it (one_file.h). Takes `fd` in any case; `path` is for messages.
 * On failure *ret stays as it was.
 */
bool sf_database_open(int fd, bool writer, const char *path, sqlite3 **ret, struct sf_error *err);

/*
 * Opens a file that may be hostile, for reading, in a transaction of its own, so that one state of
 * it is seen even while it is being written. Neither the file nor anything else is changed.
 */
bool sf_database_open_hostile(const char *path, sqlite3 **ret, struct sf_error *err);

/* Puts SQLite's last error into `err`, with the file's name and what can be done. */
bool sf_database_fail(sqlite3 *db, struct sf_error *err);

bool sf_database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct sf_error *err);

/* Runs statements that yield no rows, or whose rows do not matter. */
bool sf_database_run(sqlite3 *db, const char *sql, struct sf_error *err);

/* The one number of a query. */
bool sf_database_number(sqlite3 *db, const char *sql, int64_t *ret, struct sf_error *err);

struct sf_cell {
	const char *text;    /* not NULL: a text. It must live until the row is written */
	int64_t number;
	bool null;
};

#define SF_NUMBER(x) ((struct sf_cell){ .number = (int64_t)(x) })
#define SF_TEXT(x) ((struct sf_cell){ .text = (x) })
#define SF_NULL ((struct sf_cell){ .null = true })

/* Runs an INSERT or UPDATE with these cells as its parameters, and resets it. */
#define sf_database_write(db, statement, err, ...)                                                 \
	sf_database_write_cells((db), (statement), (const struct sf_cell[]){ __VA_ARGS__ },        \
				sizeof((const struct sf_cell[]){ __VA_ARGS__ }) /                  \
				sizeof(struct sf_cell), (err))
bool sf_database_write_cells(sqlite3 *db, sqlite3_stmt *statement, const struct sf_cell *cells,
			     size_t n, struct sf_error *err);

#endif
