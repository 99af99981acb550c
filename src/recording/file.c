/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind a recording that is being written.
 *
 * One writer at a time: a flock on the file says so for as long as the writer lives, and ends with
 * it however it ends. The descriptor stays open until SQLite has closed its own, because closing
 * any descriptor of a file drops all of SQLite's (POSIX) locks on it in this process.
 *
 * The journal is a rollback journal, deleted after each transaction. A write-ahead log was the
 * alternative: it is never merged when the writer is killed, so that the recording would be
 * two files from then on, and a file marked as WAL cannot be opened from a read-only place.
 * Synchronous is off: the kernel keeps what a killed process wrote, and waiting for the
 * disk would hold up the sampling. What a power failure does is in docs/recording.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/database.h"
#include "recording/schema.h"
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

static bool empty(int fd, const char *path, struct sf_error *err)
{
	static const char *const suffixes[] = { "-journal", "-wal", "-shm" };

	if (ftruncate(fd, 0) != 0)
		return sf_fail_os(err, "cannot empty %s", path);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		SF_CLEANUP(free) char *beside = NULL;

		if (asprintf(&beside, "%s%s", path, suffixes[i]) < 0) {
			beside = NULL;
			return sf_fail_memory(err);
		}
		if (unlink(beside) != 0 && errno != ENOENT)
			return sf_fail_os(err, "cannot remove %s, which belongs to the old %s",
					  beside, path);
	}
	return true;
}

static bool open_locked(const char *path, bool create, int *fd_ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK |
					(create ? O_CREAT : 0), 0666);
	struct stat status;

	if (fd < 0)
		return sf_fail_os(err, "cannot write %s", path);
	if (fstat(fd, &status) != 0)
		return sf_fail_os(err, "cannot look at %s", path);
	if (!S_ISREG(status.st_mode))
		return sf_fail(err, SF_E_INPUT,
			       "%s is not a regular file: a recording has to be one", path);
	if (!lock(fd, path, err))
		return false;
	if (create && (!may_replace(fd, path, err) || !empty(fd, path, err)))
		return false;
	*fd_ret = sf_steal_fd(&fd);
	return true;
}

/*
 * cache_spill: a transaction stays in memory until it is committed, so that the file itself is
 * written only then. The time-out is for readers, which keep a commit waiting.
 */
static const char settings[] =
	"PRAGMA auto_vacuum = 0;"
	"PRAGMA journal_mode = DELETE;"
	"PRAGMA synchronous = OFF;"
	"PRAGMA cache_spill = OFF;"
	"PRAGMA temp_store = MEMORY;"
	"PRAGMA trusted_schema = OFF";

#define READER_PATIENCE_MS 50

bool sf_recording_file_open(struct sf_recording *recording, bool create, struct sf_error *err)
{
	if (!open_locked(recording->path, create, &recording->lock_fd, err))
		return false;
	if (!sf_database_open(recording->path, SQLITE_OPEN_READWRITE, &recording->db, err))
		return false;
	sqlite3_busy_timeout(recording->db, READER_PATIENCE_MS);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
	return sf_database_run(recording->db, settings, err);
}
