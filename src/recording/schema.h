/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and views of a recording, as docs/recording.md describes them to users.
 *
 * SQLite's application_id identifies a recording, and user_version is its version. The text of every
 * table is part of the version. If the text differs under the same version, the file is damaged or
 * hostile (a view in the place of a table, generated columns), and the reader refuses it.
 *
 * To change the schema: raise SF_SCHEMA_VERSION, and keep reading what the old one wrote: an item
 * of schema.c says from which version on it holds, and up to which.
 */
#ifndef SF_RECORDING_SCHEMA_H
#define SF_RECORDING_SCHEMA_H

#include <sqlite3.h>

#include "base/error.h"

#define SF_APPLICATION_ID 0x53464d31 /* "SFM1", at offset 68 of the file, big-endian */
#define SF_SCHEMA_VERSION 3
#define SF_SCHEMA_OLDEST 1 /* that can be read */

/* Makes tables, views and the tables of words in an empty database. */
bool sf_schema_create(sqlite3 *db, struct sf_error *err);

/*
 * Whether `db`, which was opened from `path`, is a recording of a version that can be read: of
 * which.
 */
bool sf_schema_check(sqlite3 *db, const char *path, int *version_ret, struct sf_error *err);

#endif
