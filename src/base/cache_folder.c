/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of the user's cache on disk.
 *
 * Files are written under a temporary name and renamed, so a reader sees a whole file or none.
 */
#include "base/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/whole_io.h"

#define TEMPORARY ".new-"

static char folder_path[PATH_MAX];
static bool has_folder_path;

static bool is_ours(const struct stat *status)
{
	return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Makes and opens a folder below another; takes and closes `parent`. */
static int open_below(int parent, const char *name, int flags)
{
	SF_CLEANUP(close) int above = parent;

	if (above < 0 || (mkdirat(above, name, 0700) != 0 && errno != EEXIST))
		return -1;
	return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

/* A relative path, or one that is too long, counts for nothing (XDG Base Directory Specification). */
static bool is_usable(const char *path)
{
	return path && path[0] == '/' && strlen(path) < PATH_MAX - sizeof("/.cache");
}

/* Where the user's cache folder is to be, by the environment; empty: it does not say. */
static void find_folder_path(char ret[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	*ret = 0;
	if (is_usable(cache))
		strcpy(ret, cache);
	else if (is_usable(home))
		snprintf(ret, PATH_MAX, "%s/.cache", home);
}

void sf_cache_read_environment(void)
{
	find_folder_path(folder_path);
	has_folder_path = true;
}

/* The user's cache folder may be a link to anywhere. */
static int open_user_cache(void)
{
	char path[PATH_MAX];

	if (has_folder_path)
		strcpy(path, folder_path);
	else
		find_folder_path(path);
	if (!*path || (mkdir(path, 0700) != 0 && errno != EEXIST))
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int sf_cache_folder_open(const char *name)
{
	SF_CLEANUP(close) int folder = open_below(open_below(open_user_cache(), "stillframe", O_NOFOLLOW), name, O_NOFOLLOW);
	struct stat status;

	if (folder < 0 || fstat(folder, &status) != 0 || !is_ours(&status))
		return -1;
	return sf_steal_fd(&folder);
}

int sf_cache_file_open(int folder, const char *name, size_t *size_ret)
{
	SF_CLEANUP(close) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) || status.st_size < 0)
		return -1;
	futimens(fd, NULL); /* used now, for sf_cache_prune; no harm if it fails */
	*size_ret = (size_t)status.st_size;
	return sf_steal_fd(&fd);
}

/* No fsync: after a crash of the machine the reader's check tells. */
static bool write_file(int folder, const char *name, const struct iovec *pieces, size_t n)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	SF_CLEANUP(close) int fd = openat(folder, name, flags, 0600);
	bool fine = fd >= 0;

	for (size_t i = 0; fine && i < n; i++)
		fine = sf_write_all(fd, pieces[i].iov_base, pieces[i].iov_len);
	return fine;
}

bool sf_cache_file_put(int folder, const char *name, const struct iovec *pieces, size_t n)
{
	char temporary[64];
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return false;
	snprintf(temporary, sizeof(temporary), TEMPORARY "%016llx", (unsigned long long)number);
	if (write_file(folder, temporary, pieces, n) && renameat(folder, temporary, folder, name) == 0)
		return true;
	unlinkat(folder, temporary, 0);
	return false;
}

/*
 * The size of all files, and the name of the one used least recently. Temporary files count, too: what a
 * killed writer left behind goes when it is the oldest.
 */
static uint64_t find_oldest(int folder, char ret[SF_CACHE_NAME])
{
	SF_CLEANUP(folder) struct sf_folder entries;
	struct timespec oldest = { .tv_sec = INT64_MAX };
	const char *name;
	uint64_t total = 0;

	if (!sf_folder_open(&entries, folder, "."))
		return 0;
	while ((name = sf_folder_next(&entries))) {
		const struct timespec *used;
		struct stat status;

		if (strlen(name) >= SF_CACHE_NAME ||
		    fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		total += (uint64_t)status.st_size;
		used = &status.st_mtim;
		if (used->tv_sec > oldest.tv_sec ||
		    (used->tv_sec == oldest.tv_sec && used->tv_nsec >= oldest.tv_nsec))
			continue;
		oldest = *used;
		strcpy(ret, name);
	}
	return total;
}

void sf_cache_prune(int folder, uint64_t limit)
{
	char oldest[SF_CACHE_NAME];

	while (find_oldest(folder, oldest) > limit && unlinkat(folder, oldest, 0) == 0)
		;
}
