/* SPDX-License-Identifier: Apache-2.0 */
/* Opens SQLite databases and runs statements, with messages for the user after a failure. */
#include "recording/store/database.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/foreign_file.h"
#include "base/output.h"
#include "recording/store/one_file.h"

/* The advice for the user after an SQLite result code. */
static const struct {
	int code;
	const char *hint;
} hints[] = {
	{ SQLITE_FULL, "Make room on that disk, or give another place with -o." },
	{ SQLITE_BUSY, "Another program keeps it open in the middle of a query; close that one." },
	{ SQLITE_NOTADB, "Only files that `stillframe record` wrote can be opened." },
	{ SQLITE_READONLY_DBMOVED, "Somebody has removed the file while it was being written." },
};

static const char *hint_for(int extended)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (hints[i].code == extended || hints[i].code == (extended & 0xff))
			return hints[i].hint;
	}
	return NULL;
}

static enum sf_code code_for(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return SF_E_NO_MEMORY;
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return SF_E_DENIED;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_TOOBIG:
		return SF_E_INPUT;
	default:
		return SF_E_SYSTEM;
	}
}

bool sf_database_fail(sqlite3 *db, struct sf_error *err)
{
	int extended = sqlite3_extended_errcode(db);
	int error = sqlite3_system_errno(db);
	const char *path = sqlite3_db_filename(db, "main");
	const char *hint = hint_for(extended);
	enum sf_code code = code_for(extended);

	if (code == SF_E_NO_MEMORY)
		return sf_fail_memory(err);
	if ((extended & 0xff) == SQLITE_NOTADB)
		sf_fail(err, code, "%s is not a recording of stillframe", path ? path : "the file");
	else
		sf_fail(err, code, "%s: %s%s%s", path ? path : "database", sqlite3_errmsg(db),
			code == SF_E_SYSTEM && error ? ": " : "",
			code == SF_E_SYSTEM && error ? sf_os_error(error) : "");
	if (err)
		sf_sanitize(err->text); /* SQLite quotes the file */
	if (err && code == SF_E_SYSTEM)
		err->os_errno = error;
	return hint ? sf_fail_hint(err, "%s", hint) : false;
}

bool sf_database_open(int fd, bool writer, const char *path, sqlite3 **ret, struct sf_error *err)
{
	SF_CLEANUP(sqlite3_close) sqlite3 *db = NULL;
	int code = sf_one_file_open(fd, writer, path, &db);

	if (!db || code == SQLITE_NOMEM)
		return sf_fail_memory(err);
	if (code != SQLITE_OK) {
		int error = sqlite3_system_errno(db);

		if (!error)
			return sf_fail(err, SF_E_SYSTEM, "cannot open %s: %s", path,
				       sqlite3_errmsg(db));
		errno = error;
		return sf_fail_os(err, "cannot open %s", path);
	}
	*ret = sf_steal(&db);
	return true;
}

/* Nothing that a recording holds comes near these. */
static const struct {
	int limit, value;
} limits[] = {
	{ SQLITE_LIMIT_LENGTH, 1 << 20 },
	{ SQLITE_LIMIT_SQL_LENGTH, 64 << 10 },
	{ SQLITE_LIMIT_COLUMN, 64 },
	{ SQLITE_LIMIT_EXPR_DEPTH, 32 },
	{ SQLITE_LIMIT_COMPOUND_SELECT, 4 },
	{ SQLITE_LIMIT_VDBE_OP, 25000 },
	{ SQLITE_LIMIT_FUNCTION_ARG, 8 },
	{ SQLITE_LIMIT_ATTACHED, 0 },
	{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
	{ SQLITE_LIMIT_WORKER_THREADS, 0 },
};

#define WRITER_PATIENCE_MS 5000 /* a burst of the recording's writer takes milliseconds */

static void distrust(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)NULL);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(db, limits[i].limit, limits[i].value);
	sqlite3_busy_timeout(db, WRITER_PATIENCE_MS);
}

#define HEADER_SIZE 100
#define READ_VERSION_OFFSET 19 /* what a reader must understand; 2: a write-ahead log */

/* How many bytes the database has by its header; 0: it has none. */
static uint64_t promised_size(const unsigned char *header)
{
	uint64_t page_size = (uint64_t)header[16] << 8 | header[17];
	uint64_t pages = (uint64_t)header[28] << 24 | header[29] << 16 | header[30] << 8 | header[31];

	return pages * (page_size == 1 ? 65536 : page_size);
}

/* Says more than SQLite about a file that SQLite does not read. */
static bool explain(sqlite3 *db, const char *path, struct sf_error *err)
{
	unsigned char header[HEADER_SIZE];
	int fd = sf_one_file_fd(db);
	struct stat status;

	if (pread(fd, header, sizeof(header), 0) != HEADER_SIZE || fstat(fd, &status) != 0 ||
	    memcmp(header, "SQLite format 3", 16) != 0)
		return false;
	if (header[READ_VERSION_OFFSET] == 2) {
		sf_fail(err, SF_E_INPUT, "%s uses a write-ahead log, which stillframe does not read",
			path);
		return sf_fail_hint(err, "If it is yours: sqlite3 FILE \"PRAGMA journal_mode = DELETE\"");
	}
	if ((uint64_t)status.st_size >= promised_size(header))
		return false;
	sf_fail(err, SF_E_INPUT, "%s is cut short: of its %llu bytes, only %llu are there", path,
		(unsigned long long)promised_size(header), (unsigned long long)status.st_size);
	return sf_fail_hint(err, "They do not hold the list of its tables, without which nothing can be read.");
}

bool sf_database_open_hostile(const char *path, sqlite3 **ret, struct sf_error *err)
{
	SF_CLEANUP(sqlite3_close) sqlite3 *db = NULL;
	int fd;

	if (!sf_foreign_open_user(path, &fd, err) || !sf_database_open(fd, false, path, &db, err))
		return false;
	distrust(db);
	if (!sf_database_run(db, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"
				 "BEGIN; SELECT count(*) FROM sqlite_schema", err))
		return explain(db, path, err);
	*ret = sf_steal(&db);
	return true;
}

bool sf_database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct sf_error *err)
{
	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		return sf_database_fail(db, err);
	return true;
}

bool sf_database_run(sqlite3 *db, const char *sql, struct sf_error *err)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sf_database_fail(db, err);
	return true;
}

bool sf_database_number(sqlite3 *db, const char *sql, int64_t *ret, struct sf_error *err)
{
	SF_CLEANUP(sqlite3_finalize) sqlite3_stmt *statement = NULL;

	if (!sf_database_prepare(db, sql, &statement, err))
		return false;
	if (sqlite3_step(statement) != SQLITE_ROW)
		return sf_database_fail(db, err);
	*ret = sqlite3_column_int64(statement, 0);
	return true;
}

static int bind_cell(sqlite3_stmt *statement, int index, const struct sf_cell *cell)
{
	if (cell->null)
		return sqlite3_bind_null(statement, index);
	if (cell->text)
		return sqlite3_bind_text(statement, index, cell->text, -1, SQLITE_STATIC);
	return sqlite3_bind_int64(statement, index, cell->number);
}

bool sf_database_write_cells(sqlite3 *db, sqlite3_stmt *statement, const struct sf_cell *cells,
			     size_t n, struct sf_error *err)
{
	bool done = true;

	for (size_t i = 0; i < n && done; i++)
		done = bind_cell(statement, (int)i + 1, &cells[i]) == SQLITE_OK;
	done = done && sqlite3_step(statement) == SQLITE_DONE;
	if (!done)
		sf_database_fail(db, err); /* before the reset, which may change what SQLite says */
	sqlite3_reset(statement);
	return done;
}
