/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite file system for a recording (one_file.h).
 *
 * SQLite's file system interface (sqlite.org/vfs.html), version 1: no shared memory, no mappings.
 */
#include "recording/store/one_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "recording/store/commit.h"
#include "recording/store/file_lock.h"
#include "recording/store/redo.h"

#define VFS_NAME "stillframe-one-file"
#define UNIX_EPOCH_DAY 2440587.5 /* of 1970, in the Julian day numbers that SQLite counts by */

struct one_file {
	sqlite3_file base;
	int fd;
	bool writer;
	struct sf_file_lock lock;
	struct sf_commit commit; /* a writer's */
	struct sf_redo redo;     /* a reader's: what a killed writer left */
};

/* For the sqlite3_open_v2 under way in this thread; fd -1: none. */
static _Thread_local struct {
	int fd;
	bool writer;
} opening = { .fd = -1 };

static _Thread_local int last_error; /* errno of the last call that failed */

static struct one_file *of(sqlite3_file *file)
{
	return (struct one_file *)file;
}

static int failed_with(int code, int error)
{
	last_error = error;
	return code;
}

static int do_close(sqlite3_file *base)
{
	struct one_file *file = of(base);

	sf_commit_deinit(&file->commit);
	sf_redo_deinit(&file->redo);
	close(file->fd);
	return SQLITE_OK;
}

/* From the file itself, up to its end as SQLite is to see it; the rest stays as it is. */
static ssize_t read_file(const struct one_file *file, uint8_t *to, size_t size, uint64_t offset)
{
	uint64_t end = file->writer ? file->commit.size : file->redo.n ? file->redo.size : INT64_MAX;

	if (offset >= end)
		return 0;
	return pread(file->fd, to, end - offset < size ? end - offset : size, (off_t)offset);
}

/* A part of one page. No page that is kept or logged has the number 0. */
static ssize_t read_part(const struct one_file *file, uint8_t *to, size_t size, uint64_t offset)
{
	uint64_t index = offset / SF_PAGE_SIZE, within = offset % SF_PAGE_SIZE;
	uint32_t number = index < UINT32_MAX ? (uint32_t)index + 1 : 0;
	const struct sf_page *page = sf_pages_get(&file->commit.pages, number);
	uint64_t place = sf_redo_offset(&file->redo, number);

	if (page)
		return memcpy(to, page->data + within, size) ? (ssize_t)size : 0;
	if (place)
		return pread(file->fd, to, size, (off_t)(place + within));
	return read_file(file, to, size, offset);
}

static int do_read(sqlite3_file *base, void *to, int size, sqlite3_int64 offset)
{
	uint8_t *next = to, *end = next + size;

	while (next < end) {
		size_t page_left = SF_PAGE_SIZE - (size_t)(offset % SF_PAGE_SIZE);
		size_t left = (size_t)(end - next);
		ssize_t n = read_part(of(base), next, left < page_left ? left : page_left,
				      (uint64_t)offset);

		if (n < 0 && errno != EINTR)
			return failed_with(SQLITE_IOERR_READ, errno);
		if (n == 0) {
			memset(next, 0, left);
			return SQLITE_IOERR_SHORT_READ;
		}
		next += n > 0 ? n : 0;
		offset += n > 0 ? n : 0;
	}
	return SQLITE_OK;
}

/* SQLite writes whole pages. */
static int do_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
	struct one_file *file = of(base);
	int code;

	if (!file->writer)
		return SQLITE_READONLY;
	if (size != SF_PAGE_SIZE || offset % SF_PAGE_SIZE)
		return failed_with(SQLITE_IOERR_WRITE, EINVAL);
	code = sf_commit_put(&file->commit, (uint32_t)(offset / SF_PAGE_SIZE) + 1, data);
	return code == SQLITE_OK ? code : failed_with(code, file->commit.error);
}

static int do_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct one_file *file = of(base);

	return file->writer ? sf_commit_truncate(&file->commit, (uint64_t)size) : SQLITE_READONLY;
}

static int do_sync(sqlite3_file *base, int flags)
{
	(void)base;
	(void)flags;
	return SQLITE_OK;
}

static int do_size(sqlite3_file *base, sqlite3_int64 *ret)
{
	struct one_file *file = of(base);
	struct stat status;

	if (file->writer) {
		*ret = (sqlite3_int64)file->commit.new_size;
	} else if (file->redo.n) {
		*ret = (sqlite3_int64)file->redo.size;
	} else {
		if (fstat(file->fd, &status) != 0)
			return failed_with(SQLITE_IOERR_FSTAT, errno);
		*ret = status.st_size;
	}
	return SQLITE_OK;
}

/* Another program may have written since: no program does from here on. */
static int look_again(struct one_file *file)
{
	struct stat status;

	if (!file->writer) {
		sf_redo_deinit(&file->redo);
		return sf_redo_find(file->fd, &file->redo);
	}
	if (file->commit.logged || file->commit.longer)
		return SQLITE_OK;
	if (fstat(file->fd, &status) != 0)
		return failed_with(SQLITE_IOERR_FSTAT, errno);
	file->commit.size = file->commit.new_size = (uint64_t)status.st_size;
	return SQLITE_OK;
}

static int do_lock(sqlite3_file *base, int level)
{
	struct one_file *file = of(base);
	bool first = file->lock.level == SQLITE_LOCK_NONE;
	int code = sf_file_lock_raise(&file->lock, level);

	return code == SQLITE_OK && first ? look_again(file) : code;
}

static int do_unlock(sqlite3_file *base, int level)
{
	struct one_file *file = of(base);

	sf_commit_drop(&file->commit);
	return sf_file_lock_lower(&file->lock, level);
}

static int do_reserved(sqlite3_file *base, int *ret)
{
	return sf_file_lock_reserved(&of(base)->lock, ret);
}

/* SQLITE_FCNTL_SYNC comes at the end of a commit, also where nothing is to be forced to the disk. */
static int do_control(sqlite3_file *base, int operation, void *argument)
{
	struct one_file *file = of(base);
	int code;

	(void)argument;
	if (operation != SQLITE_FCNTL_SYNC || !file->writer)
		return SQLITE_NOTFOUND;
	code = sf_commit_sync(&file->commit);
	return code == SQLITE_OK ? code : failed_with(code, file->commit.error);
}

static int sector_size(sqlite3_file *base)
{
	(void)base;
	return SF_PAGE_SIZE;
}

static int characteristics(sqlite3_file *base)
{
	(void)base;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = do_close,
	.xRead = do_read,
	.xWrite = do_write,
	.xTruncate = do_truncate,
	.xSync = do_sync,
	.xFileSize = do_size,
	.xLock = do_lock,
	.xUnlock = do_unlock,
	.xCheckReservedLock = do_reserved,
	.xFileControl = do_control,
	.xSectorSize = sector_size,
	.xDeviceCharacteristics = characteristics,
};

/* Only the database that is being opened; no journal, no temporary file. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *flags_ret)
{
	struct one_file *file = of(base);

	(void)vfs;
	(void)name;
	*file = (struct one_file){ 0 };
	if (!(flags & SQLITE_OPEN_MAIN_DB) || opening.fd < 0)
		return failed_with(SQLITE_CANTOPEN, EACCES);
	file->fd = file->lock.fd = file->commit.fd = sf_steal_fd(&opening.fd);
	file->writer = opening.writer;
	file->lock.read_only = !opening.writer;
	file->base.pMethods = &methods;
	if (flags_ret)
		*flags_ret = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*ret = 0;
	return SQLITE_OK;
}

/* As the user gave it: without what plain_path put in front. */
static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int room, char *ret)
{
	(void)vfs;
	if (strncmp(name, "./", 2) == 0)
		name += 2;
	if (strlen(name) >= (size_t)room)
		return failed_with(SQLITE_CANTOPEN, ENAMETOOLONG);
	strcpy(ret, name);
	return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int room, char *ret)
{
	(void)vfs;
	(void)room;
	(void)ret;
	return last_error;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *ret)
{
	ssize_t n = getrandom(ret, (size_t)size, GRND_NONBLOCK);

	(void)vfs;
	return n > 0 ? (int)n : 0;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
	const struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	(void)vfs;
	nanosleep(&time, NULL);
	return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret)
{
	(void)vfs;
	*ret = UNIX_EPOCH_DAY + (double)time(NULL) / 86400;
	return SQLITE_OK;
}

static sqlite3_vfs one_file_vfs = {
	.iVersion = 1,
	.szOsFile = sizeof(struct one_file),
	.mxPathname = PATH_MAX,
	.zName = VFS_NAME,
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
	.xFullPathname = vfs_full_path,
	.xRandomness = vfs_randomness,
	.xSleep = vfs_sleep,
	.xCurrentTime = vfs_time,
	.xGetLastError = vfs_last_error,
};

/* SQLite gives a meaning to "", ":memory:" and "file:..."; a path that starts with ./ is a path. */
static char *plain_path(const char *path)
{
	char *ret;

	if (path[0] == '/')
		return strdup(path);
	return asprintf(&ret, "./%s", path) < 0 ? NULL : ret;
}

int sf_one_file_open(int fd, bool writer, const char *path, sqlite3 **ret)
{
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
	SF_CLEANUP(free) char *plain = plain_path(path);
	int code = plain ? SQLITE_OK : SQLITE_NOMEM;

	opening.fd = fd;
	opening.writer = writer;
	if (code == SQLITE_OK)
		code = sqlite3_vfs_register(&one_file_vfs, 0); /* again has no effect */
	if (code == SQLITE_OK)
		code = sqlite3_open_v2(plain, ret, flags, VFS_NAME);
	if (opening.fd >= 0)
		close(sf_steal_fd(&opening.fd));
	return code;
}

int sf_one_file_fd(sqlite3 *db)
{
	sqlite3_file *base = NULL;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &base) != SQLITE_OK ||
	    !base || base->pMethods != &methods)
		return -1;
	return of(base)->fd;
}
