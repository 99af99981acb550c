/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of our own in a program that may close or replace any descriptor. */
#include "os/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST_START 3072 /* the kernel's table reaches to the highest, and each of our threads begins with a copy */

static int high_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 * 3 > HIGHEST_START)
		return HIGHEST_START;
	return (int)(limit.rlim_cur / 4 * 3);
}

struct sf_own_fd sf_own_fd_of(int fd)
{
	struct sf_own_fd own = { .fd = fd };
	struct stat status;

	if (fstat(fd, &status) == 0) {
		own.device = status.st_dev;
		own.inode = status.st_ino;
	}
	return own;
}

struct sf_own_fd sf_own_fd_make(int fd)
{
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, high_number()) : -1;

	if (high < 0)
		return sf_own_fd_of(fd);
	close(fd);
	return sf_own_fd_of(high);
}

bool sf_own_fd_is_ours(const struct sf_own_fd *own)
{
	struct stat status;

	return own->fd >= 0 && fstat(own->fd, &status) == 0 && status.st_dev == own->device &&
	       status.st_ino == own->inode;
}

void sf_own_fd_leave(const struct sf_own_fd *own)
{
	if (sf_own_fd_is_ours(own))
		close(own->fd);
}

void sf_own_fd_close(struct sf_own_fd *own)
{
	sf_own_fd_leave(own);
	own->fd = -1;
}

/* --- a table of its own --- */

#define CLOSE_UNSHARE 2u /* CLOSE_RANGE_UNSHARE, close_range(2) */

bool sf_own_table_refused;

/* ThreadSanitizer's run-time library; NULL where it is not in the process. */
extern void __tsan_init(void) __attribute__((weak));

static unsigned lowest_from(const int *keep, unsigned n_keep, unsigned from)
{
	unsigned lowest = ~0u;

	for (unsigned i = 0; i < n_keep; i++) {
		if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < lowest)
			lowest = (unsigned)keep[i];
	}
	return lowest;
}

/* The first call copies the table, without what it closes where that reaches to the table's end. */
bool sf_own_table(const int *keep, unsigned n_keep)
{
	unsigned from = 0, kept, flags = CLOSE_UNSHARE;

	/*
	 * ThreadSanitizer assumes one table per process: it reports the same number in two tables as a data race.
	 */
	if (sf_own_table_refused || __tsan_init)
		return false;
	do {
		kept = lowest_from(keep, n_keep, from);
		if (kept > from) {
			if (syscall(SYS_close_range, from, kept == ~0u ? kept : kept - 1,
				    flags) != 0)
				return false;
			flags = 0;
		}
		from = kept + 1;
	} while (kept != ~0u);
	for (int i = 0; i < 3; i++)
		open("/dev/null", O_RDWR | O_CLOEXEC);
	return true;
}
