/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of an output file's path. The same rules (is_ours()) hold for a file that is opened and for one
 * that is replaced.
 */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool is_ours(const struct stat *status, const char *path, struct sf_error *err)
{
	if (S_ISLNK(status->st_mode))
		sf_fail(err, SF_E_INPUT, "%s is a symbolic link: not written", path);
	else if (!S_ISREG(status->st_mode))
		sf_fail(err, SF_E_INPUT, "%s is not a regular file: not written", path);
	else if (status->st_uid != geteuid())
		sf_fail(err, SF_E_DENIED, "%s belongs to user %u: not written", path,
			(unsigned)status->st_uid);
	else if (status->st_nlink > 1)
		sf_fail(err, SF_E_INPUT, "%s is one of several names of a file: not written", path);
	else
		return true;
	return sf_fail_hint(err, "Give another name with -o, or remove it first.");
}

bool sf_output_file_check(const char *path, struct sf_error *err)
{
	struct stat status;

	if (lstat(path, &status) == 0)
		return is_ours(&status, path, err);
	return errno == ENOENT || sf_fail_os(err, "cannot write %s", path);
}

bool sf_output_file_open(const char *path, int *ret, struct sf_error *err)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	SF_CLEANUP(close) int fd = -1;
	struct stat status;

	if (!sf_output_file_check(path, err))
		return false;
	fd = open(path, flags, 0600);
	if (fd < 0)
		return sf_fail_os(err, "cannot write %s", path);
	if (fstat(fd, &status) != 0)
		return sf_fail_os(err, "cannot look at %s", path);
	if (!is_ours(&status, path, err))
		return false;
	*ret = sf_steal_fd(&fd);
	return true;
}
