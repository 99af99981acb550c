/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a table of a file that somebody else may have written: every cell is checked against
 * its column's type and range before anyone sees it. Private to src/recording.
 */
#ifndef SF_RECORDING_PROFILE_ROWS_H
#define SF_RECORDING_PROFILE_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SF_MAX_COLUMNS 14

struct sf_column {
	const char *name;
	bool text;                /* valid UTF-8 without control characters */
	bool nullable;            /* NULL reads as minimum - 1 */
	int64_t minimum, maximum; /* of a number; of a text: sizes in bytes */
};

struct sf_value {
	int64_t number;
	const char *text;         /* valid during the call */
};

/*
 * `add` gets each row, its values in the order of the columns. To refuse one it returns
 * sf_rows_refuse.
 */
struct sf_rows;
typedef bool sf_row_fn(const struct sf_value *values, struct sf_rows *rows);

struct sf_table_form {
	const char *name;
	const char *order;        /* columns, so that every file comes in the same order */
	sf_row_fn *add;
	struct sf_column columns[SF_MAX_COLUMNS]; /* name NULL behind the last one */
};

struct sf_rows {
	const struct sf_table_form *form;
	const char *path;         /* of the file, for messages */
	uint64_t number;          /* of the row, from 1 */
	bool cut;                 /* the file is cut short: the first row that is not right ends the table */
	void *arg;
	struct sf_error *err;
};

bool sf_rows_read(sqlite3 *db, const char *path, bool cut, const struct sf_table_form *form, void *arg,
		  struct sf_error *err);

/* Returns false after putting "FILE is damaged: TABLE, row N: ..." into the rows' error. */
bool sf_rows_refuse(struct sf_rows *rows, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same as a check: `value` must be in [minimum, maximum]. */
bool sf_rows_check(struct sf_rows *rows, const char *what, int64_t value, int64_t minimum,
		   int64_t maximum);

#endif
