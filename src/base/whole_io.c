/* SPDX-License-Identifier: Apache-2.0 */
/* Loops around read(2) and write(2), which may stop anywhere. */
#include "base/whole_io.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

bool sf_read_all(int fd, void *ret, size_t size)
{
	char *at = ret;

	while (size) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

bool sf_file_may_end_at(uint64_t end)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur)
		return true;
	errno = EFBIG;
	return false;
}

/* A descriptor without a position, such as a pipe, has no size either. */
static bool has_room(int fd, size_t size)
{
	const int error = errno;
	off_t at = lseek(fd, 0, SEEK_CUR);

	errno = error;
	return at < 0 || sf_file_may_end_at((uint64_t)at + size);
}

bool sf_write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	if (!has_room(fd, size))
		return false;
	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}
