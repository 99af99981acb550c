/* SPDX-License-Identifier: Apache-2.0 */
/* Loops around read(2) and write(2), which may stop anywhere. */
#include "base/whole_io.h"

#include <errno.h>
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

bool sf_write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

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
