/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of a table and checks every cell. The file is hostile input. */
#include "recording/profile/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "recording/store/database.h"

bool sf_rows_refuse(struct sf_rows *rows, const char *format, ...)
{
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return sf_fail(rows->err, SF_E_INPUT, "%s is damaged: %s, row %" PRIu64 ": %s", rows->path,
		       rows->form->name, rows->number, reason);
}

bool sf_rows_check(struct sf_rows *rows, const char *what, int64_t value, int64_t minimum,
		   int64_t maximum)
{
	if (value >= minimum && value <= maximum)
		return true;
	return sf_rows_refuse(rows, "%s is %" PRId64 ", not in %" PRId64 " to %" PRId64, what,
			      value, minimum, maximum);
}

static bool read_text(sqlite3_stmt *statement, int index, struct sf_value *ret,
		      struct sf_rows *rows)
{
	const struct sf_column *column = &rows->form->columns[index];
	const char *text = (const char *)sqlite3_column_text(statement, index);

	if (!text)
		return sf_fail_memory(rows->err);
	if (strlen(text) != (size_t)sqlite3_column_bytes(statement, index) || !sf_is_text(text))
		return sf_rows_refuse(rows, "%s is not text", column->name);
	ret->text = text;
	return true;
}

static bool read_number(sqlite3_stmt *statement, int index, struct sf_value *ret,
			struct sf_rows *rows)
{
	const struct sf_column *column = &rows->form->columns[index];

	ret->number = sqlite3_column_int64(statement, index);
	return sf_rows_check(rows, column->name, ret->number, column->minimum, column->maximum);
}

static bool read_value(sqlite3_stmt *statement, int index, struct sf_value *ret,
		       struct sf_rows *rows)
{
	const struct sf_column *column = &rows->form->columns[index];

	switch (sqlite3_column_type(statement, index)) {
	case SQLITE_TEXT:
		if (column->text)
			return read_text(statement, index, ret, rows);
		break;
	case SQLITE_INTEGER:
		if (!column->text)
			return read_number(statement, index, ret, rows);
		break;
	case SQLITE_NULL:
		if (column->nullable) {
			ret->number = column->minimum - 1;
			return true;
		}
		break;
	}
	return sf_rows_refuse(rows, "%s has the wrong type", column->name);
}

static int n_columns(const struct sf_table_form *form)
{
	int n = 0;

	while (n < SF_MAX_COLUMNS && form->columns[n].name)
		n++;
	return n;
}

static bool prepare(sqlite3 *db, const struct sf_table_form *form, sqlite3_stmt **ret,
		    struct sf_error *err)
{
	char sql[512] = "SELECT ";
	size_t used = strlen(sql);

	for (int i = 0; i < n_columns(form); i++)
		used += (size_t)snprintf(sql + used, sizeof(sql) - used, "%s\"%s\"", i ? "," : "",
					 form->columns[i].name);
	snprintf(sql + used, sizeof(sql) - used, " FROM %s ORDER BY %s", form->name, form->order);
	return sf_database_prepare(db, sql, ret, err);
}

static bool take_row(sqlite3_stmt *statement, struct sf_rows *rows)
{
	struct sf_value values[SF_MAX_COLUMNS] = { 0 };
	const int n = n_columns(rows->form);

	rows->number++;
	for (int i = 0; i < n; i++) {
		if (!read_value(statement, i, &values[i], rows))
			return false;
	}
	return rows->form->add(values, rows);
}

static bool read_all(sqlite3 *db, sqlite3_stmt *statement, struct sf_rows *rows)
{
	int code;

	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!take_row(statement, rows))
			return false;
	}
	return code == SQLITE_DONE || sf_database_fail(db, rows->err);
}

bool sf_rows_read(sqlite3 *db, const char *path, bool cut, const struct sf_table_form *form, void *arg,
		  struct sf_error *err)
{
	SF_CLEANUP(sqlite3_finalize) sqlite3_stmt *statement = NULL;
	struct sf_error wrong = { 0 };
	struct sf_rows rows = { .form = form, .path = path, .cut = cut, .arg = arg, .err = &wrong };

	if (!prepare(db, form, &statement, err))
		return false;
	if (read_all(db, statement, &rows) || (cut && wrong.code == SF_E_INPUT))
		return true;
	if (err)
		*err = wrong;
	return false;
}
