/* SPDX-License-Identifier: Apache-2.0 */
/* Loops around read(2) and write(2), which may stop anywhere. */
#include "base/whole_io.h"

#include <sys/resource.h>
#include <unistd.h>

bool sf_read_all(int fd, void *ret, size_t size)
{
	return sf_move_all(done, size, read(fd, (char *)ret + done, size - done));
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
	return has_room(fd, size) && sf_move_all(done, size, write(fd, (const char *)bytes + done, size - done));
}
