/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and views of a recording, as docs/recording.md describes them to users.
 *
 * SQLite's application_id identifies a recording, and user_version is its version. The text of every
 * table is part of the version. If the text differs under the same version, the file is damaged or
 * hostile (a view in the place of a table, generated columns), and the reader refuses it.
 *
 * To change the schema: raise SF_SCHEMA_VERSION. stillframe reads the version that it writes, and no other.
 */
#ifndef SF_RECORDING_STORE_SCHEMA_H
#define SF_RECORDING_STORE_SCHEMA_H

#include <sqlite3.h>

#include "base/error.h"

#define SF_APPLICATION_ID 0x53464d31 /* "SFM1", at offset 68 of the file, big-endian */
#define SF_SCHEMA_VERSION 1

/* Of a text, in bytes: command lines may have megabytes. */
#define SF_MAX_TEXT 65536

/* Functions at one address, at most: readers refuse more. */
#define SF_MAX_INLINED 256

/* Makes tables, views and the tables of words in an empty database. */
bool sf_schema_create(sqlite3 *db, struct sf_error *err);

/* Whether `db`, which was opened from `path`, is a recording of this version and has its tables. */
bool sf_schema_check(sqlite3 *db, const char *path, struct sf_error *err);

#endif
