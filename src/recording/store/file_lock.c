/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's locks on a recording.
 *
 * The places of the locks are part of SQLite's file format.
 */
#include "recording/store/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>

#define PENDING_BYTE 0x40000000
#define RESERVED_BYTE (PENDING_BYTE + 1)
#define SHARED_FIRST (PENDING_BYTE + 2)
#define SHARED_SIZE 510

static int set(const struct sf_file_lock *lock, short type, off_t start, off_t size)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = start,
			       .l_len = size };

	if (fcntl(lock->fd, F_OFD_SETLK, &range) == 0)
		return SQLITE_OK;
	switch (errno) {
	case EAGAIN:
	case EACCES:
		return SQLITE_BUSY;
	case EINTR:
		return SQLITE_BUSY;
	default: /* no locks here */
		return SQLITE_OK;
	}
}

/* While a writer waits until all readers have finished, it holds the pending byte, which keeps new readers out. */
static int take_shared(struct sf_file_lock *lock)
{
	int code = set(lock, F_RDLCK, PENDING_BYTE, 1);

	if (code != SQLITE_OK)
		return code;
	code = set(lock, F_RDLCK, SHARED_FIRST, SHARED_SIZE);
	set(lock, F_UNLCK, PENDING_BYTE, 1);
	if (code == SQLITE_OK)
		lock->level = SQLITE_LOCK_SHARED;
	return code;
}

static int take_reserved(struct sf_file_lock *lock)
{
	int code = set(lock, F_WRLCK, RESERVED_BYTE, 1);

	if (code == SQLITE_OK)
		lock->level = SQLITE_LOCK_RESERVED;
	return code;
}

static int take_exclusive(struct sf_file_lock *lock)
{
	int code = SQLITE_OK;

	if (lock->level < SQLITE_LOCK_PENDING)
		code = set(lock, F_WRLCK, PENDING_BYTE, 1);
	if (code != SQLITE_OK)
		return code;
	lock->level = SQLITE_LOCK_PENDING;
	code = set(lock, F_WRLCK, SHARED_FIRST, SHARED_SIZE);
	if (code == SQLITE_OK)
		lock->level = SQLITE_LOCK_EXCLUSIVE;
	return code;
}

int sf_file_lock_raise(struct sf_file_lock *lock, int level)
{
	if (lock->level >= level)
		return SQLITE_OK;
	switch (level) {
	case SQLITE_LOCK_SHARED:
		return take_shared(lock);
	case SQLITE_LOCK_RESERVED:
		return lock->read_only ? SQLITE_READONLY : take_reserved(lock);
	default:
		return lock->read_only ? SQLITE_READONLY : take_exclusive(lock);
	}
}

int sf_file_lock_lower(struct sf_file_lock *lock, int level)
{
	int code = SQLITE_OK;

	if (lock->level <= level)
		return SQLITE_OK;
	if (level == SQLITE_LOCK_SHARED)
		code = set(lock, F_RDLCK, SHARED_FIRST, SHARED_SIZE);
	else
		set(lock, F_UNLCK, SHARED_FIRST, SHARED_SIZE);
	set(lock, F_UNLCK, PENDING_BYTE, 2);
	lock->level = level;
	return code == SQLITE_OK ? SQLITE_OK : SQLITE_IOERR_RDLOCK;
}

int sf_file_lock_reserved(const struct sf_file_lock *lock, int *ret)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RESERVED_BYTE,
			       .l_len = 1 };

	*ret = lock->level >= SQLITE_LOCK_RESERVED ||
	       (fcntl(lock->fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK);
	return SQLITE_OK;
}
