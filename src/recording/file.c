/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind a recording that is being written.
 *
 * A flock on the file admits one writer at a time. The lock ends with the writer, however the writer
 * ends. Other users may be able to write to the folder, so no other file is ever made, read, or
 * removed there: one_file.h.
 *
 * The journal is in memory, and a transaction reaches the file in one step: commit.h. The alternative
 * was a journal beside the file. But other users can place one there, and after a kill the recording
 * would be two files. Synchronous is off: the kernel keeps the bytes that a killed process wrote, and
 * waiting for the disk would delay the sampling. docs/recording.md describes the effect of a power
 * failure.
 */
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/output_file.h"
#include "recording/store/database.h"
#include "recording/store/schema.h"
#include "recording/writer.h"

#define HEADER_SIZE 100
#define APPLICATION_ID_OFFSET 68

static bool is_recording(const unsigned char *header)
{
	const unsigned char *id = header + APPLICATION_ID_OFFSET;

	return memcmp(header, "SQLite format 3", 16) == 0 &&
	       ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
		       SF_APPLICATION_ID;
}

/* Only recordings and empty files are replaced: -o may be a slip of the finger. */
static bool may_replace(int fd, const char *path, struct sf_error *err)
{
	unsigned char header[HEADER_SIZE];
	ssize_t size = pread(fd, header, sizeof(header), 0);

	if (size < 0)
		return sf_fail_os(err, "cannot read %s", path);
	if (size == 0 || (size == HEADER_SIZE && is_recording(header)))
		return true;
	sf_fail(err, SF_E_INPUT, "%s exists and is not a recording: not replaced", path);
	return sf_fail_hint(err, "Give another name with -o, or remove it first.");
}

static bool lock(int fd, const char *path, struct sf_error *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return true; /* a file system without locks: go without */
	sf_fail(err, SF_E_INPUT, "another stillframe is writing to %s", path);
	return sf_fail_hint(err, "Give another name with -o, or stop that one first.");
}

static bool open_locked(const char *path, int *fd_ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_output_file_open(path, &fd, err) || !lock(fd, path, err) ||
	    !may_replace(fd, path, err))
		return false;
	if (ftruncate(fd, 0) != 0)
		return sf_fail_os(err, "cannot empty %s", path);
	*fd_ret = sf_steal_fd(&fd);
	return true;
}

/*
 * cache_spill: a transaction stays in memory until it is committed, so that the file itself is
 * written only then. The time-out is for readers, which keep a commit waiting.
 */
static const char settings[] =
	"PRAGMA page_size = 4096;"
	"PRAGMA auto_vacuum = 0;"
	"PRAGMA journal_mode = MEMORY;"
	"PRAGMA synchronous = OFF;"
	"PRAGMA cache_spill = OFF;"
	"PRAGMA temp_store = MEMORY;"
	"PRAGMA trusted_schema = OFF";

#define READER_PATIENCE_MS 50

bool sf_recording_file_open(struct sf_recording *recording, struct sf_error *err)
{
	int fd = -1;

	if (!open_locked(recording->path, &fd, err) ||
	    !sf_database_open(fd, true, recording->path, &recording->db, err))
		return false;
	sqlite3_busy_timeout(recording->db, READER_PATIENCE_MS);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
	return sf_database_run(recording->db, settings, err);
}
