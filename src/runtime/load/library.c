/* SPDX-License-Identifier: Apache-2.0 */
/* Places a library where a process can open it, for load.c. */
#include "runtime/load/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"

#define CHUNK 65536
#define MAX_LIBRARY (INT64_C(256) << 20)

/* The same file stands under the same path there, and its user may read it: we are that user. */
static bool is_seen(const struct sf_load_target *target, const char *path, int fd)
{
	SF_CLEANUP(close) int found = path[0] == '/' && target->root >= 0 ?
					      sf_foreign_find(target->root, path) : -1;
	char again[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	struct stat own, its;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	return found >= 0 && fstat(fd, &own) == 0 && fstat(found, &its) == 0 &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino && access(again, R_OK) == 0;
}

static bool copy_bytes(int from, int to, struct sf_error *err)
{
	char bytes[CHUNK];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, bytes, sizeof(bytes), at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sf_fail_os(err, "cannot read the agent");
		if (at > MAX_LIBRARY)
			return sf_fail(err, SF_E_INPUT, "the agent is too large to be copied");
		for (ssize_t done = 0, m; done < n; done += m) {
			m = write(to, bytes + done, (size_t)(n - done));
			if (m < 0 && errno == EINTR)
				m = 0;
			else if (m < 0)
				return sf_fail_os(err,
						  "cannot copy the agent into the target's /tmp");
		}
		at += n;
	}
	return true;
}

static bool copy(const struct sf_load_target *target, int from, struct sf_load_library *ret,
		 struct sf_error *err)
{
	SF_CLEANUP(close) int to = -1;
	unsigned long long number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return sf_fail_os(err, "cannot make up a name");
	snprintf(ret->copy, sizeof(ret->copy), "libstillframe-agent-%016llx.so", number);
	to = openat(target->tmp, ret->copy, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		    0500);
	if (to < 0) {
		ret->copy[0] = 0;
		return sf_fail_os(err, "cannot copy the agent into the /tmp of pid %d",
				  target->pid);
	}
	snprintf(ret->path, sizeof(ret->path), "/tmp/%s", ret->copy);
	if (copy_bytes(from, to, err))
		return true;
	sf_load_library_hide(target, ret);
	return false;
}

bool sf_load_library_show(const struct sf_load_target *target, const char *path, int fd,
			  struct sf_load_library *ret, struct sf_error *err)
{
	*ret = (struct sf_load_library){ 0 };
	if (!is_seen(target, path, fd))
		return copy(target, fd, ret, err);
	if (strlen(path) >= sizeof(ret->path))
		return sf_fail(err, SF_E_INPUT, "the path of the agent is too long");
	memcpy(ret->path, path, strlen(path) + 1);
	return true;
}

void sf_load_library_hide(const struct sf_load_target *target,
			  const struct sf_load_library *library)
{
	if (library->copy[0])
		unlinkat(target->tmp, library->copy, 0);
}
