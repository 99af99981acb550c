/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interposers for stat() and its kin. The number of links of /proc/self/task is two more than that of the process's threads.
 * Programs that must have one thread only count their threads so: Chromium's zygote ends itself if there are more. The agent's
 * threads are taken off. Signal-safe, as libc's functions are.
 *
 * Not seen: statx(2), and the numbers in the text of /proc/self/stat and /proc/self/status.
 */
#undef _FILE_OFFSET_BITS /* else stat is declared as another name of stat64 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/interpose/interpose.h"
#include "frozen/raw.h"

#define TASK "/proc/self/task"
#define LEAST_LINKS 3 /* of a process with one thread */

/* Whether the last part of the path is "task": all others need no closer look. NULL: the folder of fstatat() (Linux 6.11). */
static bool is_named_task(const char *path)
{
	size_t length = path ? strlen(path) : 0;

	while (length && path[length - 1] == '/')
		length--;
	return length >= 4 && strncmp(path + length - 4, "task", 4) == 0 && (length == 4 || path[length - 5] == '/');
}

/* By its own number: the path may lead there by any way. */
static bool is_own_task(dev_t device, ino_t inode)
{
	struct stat own;

	return sf_raw4(SYS_newfstatat, AT_FDCWD, TASK, &own, 0) == 0 && own.st_dev == device && own.st_ino == inode;
}

static nlink_t without_own(nlink_t links)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	const unsigned n = hooks ? hooks->own_threads() : 0;

	return links >= n + LEAST_LINKS ? links - n : links;
}

/*
 * A function of libc: its parameters, of which `path` and `status` are two, and its arguments. To add one: a line below, and one
 * in interpose.h.
 */
#define INTERPOSE(name, parameters, ...)                                                           \
	SF_INTERPOSED int name parameters                                                          \
	{                                                                                          \
		int (*next) parameters = (int (*) parameters)sf_interpose_find(SF_NEXT_##name);    \
		int result;                                                                        \
                                                                                                   \
		if (!next) {                                                                       \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		result = next(__VA_ARGS__);                                                        \
		if (result == 0 && S_ISDIR(status->st_mode) && is_named_task(path) &&              \
		    is_own_task(status->st_dev, status->st_ino))                                   \
			status->st_nlink = without_own(status->st_nlink);                          \
		return result;                                                                     \
	}

INTERPOSE(stat, (const char *restrict path, struct stat *restrict status), path, status)
INTERPOSE(stat64, (const char *restrict path, struct stat64 *restrict status), path, status)
INTERPOSE(fstatat, (int folder, const char *restrict path, struct stat *restrict status, int flags),
	  folder, path, status, flags)
INTERPOSE(fstatat64, (int folder, const char *restrict path, struct stat64 *restrict status, int flags),
	  folder, path, status, flags)

/* Of programs that were linked with a glibc before 2.33; its present headers do not declare these. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);

INTERPOSE(__xstat, (int version, const char *path, struct stat *status), version, path, status)
INTERPOSE(__xstat64, (int version, const char *path, struct stat64 *status), version, path, status)
INTERPOSE(__fxstatat, (int version, int folder, const char *path, struct stat *status, int flags),
	  version, folder, path, status, flags)
INTERPOSE(__fxstatat64, (int version, int folder, const char *path, struct stat64 *status, int flags),
	  version, folder, path, status, flags)
