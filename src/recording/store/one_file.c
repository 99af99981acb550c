/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite file system for a recording (one_file.h).
 *
 * It stands in front of SQLite's own "unix" file system (sqlite.org/vfs.html), which takes the locks and reads
 * the file, through a copy of the one descriptor. Version 1 of the interface: no shared memory, no mappings.
 */
#include "recording/store/one_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "recording/store/commit.h"
#include "recording/store/missing_pages.h"

#define VFS_NAME "stillframe-one-file"

struct one_file {
	sqlite3_file base;
	bool writer, locked;
	struct sf_commit commit; /* of a reader: fd, and the pages and the size that a killed writer left */
	struct sf_missing_pages missing; /* of a reader */
	_Alignas(8) unsigned char below[]; /* the "unix" file system's struct for the same file */
};

/* For the sqlite3_open_v2 under way in this thread; fd -1: none. */
static _Thread_local struct {
	int fd;
	bool writer;
	const char *path;
} opening = { .fd = -1 };

static _Thread_local int last_error; /* errno of the last call that failed */

static struct one_file *of(sqlite3_file *file)
{
	return (struct one_file *)file;
}

static sqlite3_file *below(sqlite3_file *file)
{
	return (sqlite3_file *)of(file)->below;
}

static int failed_with(int code, int error)
{
	last_error = error;
	return code;
}

/* The result of a call of the "unix" file system. */
static int result(int code)
{
	return code == SQLITE_OK ? code : failed_with(code, errno);
}

static int do_close(sqlite3_file *base)
{
	struct one_file *file = of(base);

	if (file->writer)
		sf_commit_deinit(&file->commit);
	else
		sf_pages_drop(&file->commit.pages, 0);
	sf_missing_pages_deinit(&file->missing);
	below(base)->pMethods->xClose(below(base));
	close(file->commit.fd);
	return SQLITE_OK;
}

/* The page as the redo record has it, or one that is made for its place; NULL: as it is in the file. */
static const uint8_t *find_page(const struct one_file *file, uint32_t number, uint8_t made[SF_PAGE_SIZE])
{
	const struct sf_page *page = sf_pages_get(&file->commit.pages, number);

	if (page)
		return page->data;
	return sf_missing_pages_make(&file->missing, number, made) ? made : NULL;
}

/* SQLite reads pages or parts of one. A hostile file may have larger pages than its redo record. */
static int do_read(sqlite3_file *base, void *to, int size, sqlite3_int64 offset)
{
	const struct one_file *file = of(base);
	const uint64_t index = (uint64_t)offset / SF_PAGE_SIZE, within = (uint64_t)offset % SF_PAGE_SIZE;
	uint8_t made[SF_PAGE_SIZE];
	const uint8_t *page;

	if (!file->commit.pages.list.n && !file->missing.promised)
		return result(below(base)->pMethods->xRead(below(base), to, size, offset));
	if (within + (uint64_t)size > SF_PAGE_SIZE || index >= UINT32_MAX)
		return SQLITE_CORRUPT;
	page = find_page(file, (uint32_t)index + 1, made);
	if (!page)
		return result(below(base)->pMethods->xRead(below(base), to, size, offset));
	memcpy(to, page + within, (size_t)size);
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

	if (!file->writer && !file->commit.pages.list.n && file->missing.promised) {
		*ret = (sqlite3_int64)file->missing.promised;
		return SQLITE_OK;
	}
	if (!file->writer && !file->commit.pages.list.n)
		return result(below(base)->pMethods->xFileSize(below(base), ret));
	*ret = (sqlite3_int64)file->commit.new_size;
	return SQLITE_OK;
}

/* Carries out the work that a killed writer left, or finds what is missing: a file with a redo record is whole. */
static int read_reader_state(struct one_file *file)
{
	int code = sf_redo_find(file->commit.fd, &file->commit.pages, &file->commit.new_size);

	sf_missing_pages_deinit(&file->missing);
	if (code == SQLITE_OK && !file->commit.pages.list.n)
		code = sf_missing_pages_find(file->commit.fd, &file->missing);
	return code;
}

/* Another program may have written since the last lock. From here on no program writes. */
static int read_state(struct one_file *file)
{
	struct stat status;

	if (!file->writer)
		return read_reader_state(file);
	if (file->commit.logged || file->commit.longer)
		return SQLITE_OK;
	if (fstat(file->commit.fd, &status) != 0)
		return failed_with(SQLITE_IOERR_FSTAT, errno);
	file->commit.size = file->commit.new_size = (uint64_t)status.st_size;
	return SQLITE_OK;
}

/* The file system has no locks (fcntl(2)): SQLite goes without. */
static bool has_no_locks(int error)
{
	return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

static int do_lock(sqlite3_file *base, int level)
{
	struct one_file *file = of(base);
	int code;

	errno = 0;
	code = below(base)->pMethods->xLock(below(base), level);
	if (code != SQLITE_OK && has_no_locks(errno))
		code = SQLITE_OK;
	if (code != SQLITE_OK || file->locked)
		return result(code);
	file->locked = true;
	return read_state(file);
}

static int do_unlock(sqlite3_file *base, int level)
{
	struct one_file *file = of(base);

	if (file->writer)
		sf_commit_drop(&file->commit);
	file->locked = level != SQLITE_LOCK_NONE;
	return result(below(base)->pMethods->xUnlock(below(base), level));
}

static int do_reserved(sqlite3_file *base, int *ret)
{
	return result(below(base)->pMethods->xCheckReservedLock(below(base), ret));
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

static sqlite3_vfs *unix_vfs, one_file_vfs;
static int (*unix_open)(const char *path, int flags, int mode);

/* The system call by which "unix" opens files: of this file system there is only the one. */
static int open_again(const char *path, int flags, int mode)
{
	return opening.fd < 0 ? unix_open(path, flags, mode) : fcntl(opening.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Only the database that is being opened; no journal, no temporary file. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *flags_ret)
{
	struct one_file *file = of(base);
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)]; /* SQLite compares what it leads to with what is open */
	int code;

	(void)vfs;
	(void)name;
	base->pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB) || opening.fd < 0)
		return failed_with(SQLITE_CANTOPEN, EACCES);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", opening.fd);
	code = unix_vfs->xOpen(unix_vfs, link, below(base), flags, flags_ret);
	if (code != SQLITE_OK)
		return result(code);
	*file = (struct one_file){
		.base.pMethods = &methods,
		.writer = opening.writer,
		.commit.fd = sf_steal_fd(&opening.fd),
	};
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

/* The path as the user gave it, for messages. SQLite gets a name without a meaning: not "", ":memory:" or "file:...". */
static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	(void)vfs;
	(void)name;
	if (snprintf(ret, (size_t)size, "%s", opening.path) >= size)
		return failed_with(SQLITE_CANTOPEN, ENAMETOOLONG);
	return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *ret)
{
	(void)vfs;
	(void)size;
	(void)ret;
	return last_error;
}

static int register_vfs(void)
{
	unix_vfs = sqlite3_vfs_find("unix");
	if (!unix_vfs)
		return SQLITE_CANTOPEN;
	if (sqlite3_vfs_find(VFS_NAME))
		return SQLITE_OK;
	unix_open = (int (*)(const char *, int, int))unix_vfs->xGetSystemCall(unix_vfs, "open");
	if (!unix_open || unix_vfs->xSetSystemCall(unix_vfs, "open", (sqlite3_syscall_ptr)open_again) != SQLITE_OK)
		return SQLITE_CANTOPEN;
	one_file_vfs = *unix_vfs; /* time, sleep and random numbers stay */
	one_file_vfs.iVersion = 1;
	one_file_vfs.zName = VFS_NAME;
	one_file_vfs.szOsFile = (int)sizeof(struct one_file) + unix_vfs->szOsFile;
	one_file_vfs.xOpen = vfs_open;
	one_file_vfs.xDelete = vfs_delete;
	one_file_vfs.xAccess = vfs_access;
	one_file_vfs.xFullPathname = vfs_full_path;
	one_file_vfs.xGetLastError = vfs_last_error;
	return sqlite3_vfs_register(&one_file_vfs, 0);
}

int sf_one_file_open(int fd, bool writer, const char *path, sqlite3 **ret)
{
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
	int code = register_vfs();

	opening.fd = fd;
	opening.writer = writer;
	opening.path = path;
	if (code == SQLITE_OK)
		code = sqlite3_open_v2("recording", ret, flags, VFS_NAME);
	if (opening.fd >= 0)
		close(sf_steal_fd(&opening.fd));
	return code;
}

static const struct one_file *file_of(sqlite3 *db)
{
	sqlite3_file *base = NULL;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &base) != SQLITE_OK ||
	    !base || base->pMethods != &methods)
		return NULL;
	return of(base);
}

int sf_one_file_fd(sqlite3 *db)
{
	const struct one_file *file = file_of(db);

	return file ? file->commit.fd : -1;
}

bool sf_one_file_is_cut(sqlite3 *db, uint64_t *there_ret, uint64_t *promised_ret)
{
	const struct one_file *file = file_of(db);

	if (!file || !file->missing.promised)
		return false;
	*there_ret = file->missing.there;
	*promised_ret = file->missing.promised;
	return true;
}
