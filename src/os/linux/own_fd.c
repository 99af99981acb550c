/* SPDX-License-Identifier: Apache-2.0 */
#include "os/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's table of descriptors is as long as the highest number: 16,384 entries. */
#define HIGHEST_START 12288u

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

void sf_own_fd_close(struct sf_own_fd *own)
{
	if (sf_own_fd_is_ours(own))
		close(own->fd);
	own->fd = -1;
}
