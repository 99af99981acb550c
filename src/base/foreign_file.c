/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files whose names come from outside.
 *
 * A path is walked one component at a time. The kernel triggers an automount when a path leads
 * through it, but not when an O_PATH open ends at it (open(2)); so each component is the end of an
 * open of its own. Symbolic links are read and put in front of the rest of the path, which also
 * keeps absolute ones below the root.
 */
#include "base/foreign_file.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#define MAX_LINKS 40 /* the kernel's own limit (path_resolution(7)) */

#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570 /* linux/fs/configfs/mount.c: in no header for programs */
#endif

/* File systems whose files are made by the kernel: reading one can wait, or change something. */
static const uint32_t made_by_kernel[] = {
	PROC_SUPER_MAGIC,  SYSFS_MAGIC,        DEBUGFS_MAGIC,  TRACEFS_MAGIC,
	SECURITYFS_MAGIC,  CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
	EFIVARFS_MAGIC,    PSTOREFS_MAGIC,     SELINUX_MAGIC,  CONFIGFS_MAGIC,
	BINFMTFS_MAGIC,    AUTOFS_SUPER_MAGIC,
};

struct walk {
	int root;              /* AT_FDCWD, or the caller's folder */
	int at;                /* the folder reached so far, an O_PATH descriptor */
	unsigned n_links;
	char rest[PATH_MAX];   /* of the path, without leading slashes */
};

static bool is_root(const struct walk *walk)
{
	struct stat at, root;

	return walk->root != AT_FDCWD && fstat(walk->at, &at) == 0 &&
	       fstat(walk->root, &root) == 0 && at.st_dev == root.st_dev &&
	       at.st_ino == root.st_ino;
}

/* Goes on at `next`, which it takes; false if that is -1. */
static bool go_to(struct walk *walk, int next)
{
	if (next < 0)
		return false;
	if (walk->at >= 0)
		close(walk->at);
	walk->at = next;
	return true;
}

static bool go_to_root(struct walk *walk)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	return go_to(walk, walk->root == AT_FDCWD ? open("/", flags)
						  : openat(walk->root, ".", flags));
}

/* Makes `path` the rest of the way: from the root if it is absolute, else from where the walk is. */
static bool set_rest(struct walk *walk, const char *path)
{
	size_t length = strlen(path);

	if (!length || length >= sizeof(walk->rest)) {
		errno = length ? ENAMETOOLONG : ENOENT;
		return false;
	}
	if (path[0] == '/' && !go_to_root(walk))
		return false;
	memmove(walk->rest, path, length + 1);
	return true;
}

/* Cuts the next component off the rest; false at the end. "" and "." are no components. */
static bool next_component(struct walk *walk, char ret[PATH_MAX])
{
	for (;;) {
		char *start = walk->rest + strspn(walk->rest, "/");
		size_t length = strcspn(start, "/");
		bool itself = length == 1 && *start == '.';

		if (!length)
			return false;
		if (!itself)
			snprintf(ret, PATH_MAX, "%.*s", (int)length, start);
		memmove(walk->rest, start + length, strlen(start + length) + 1);
		if (!itself)
			return true;
	}
}

/* Puts where a symbolic link leads in front of the rest of the path. */
static bool follow(struct walk *walk, int link)
{
	char path[2 * PATH_MAX];
	ssize_t size = readlinkat(link, "", path, PATH_MAX);

	if (size < 0 || size >= PATH_MAX || ++walk->n_links > MAX_LINKS) {
		errno = size < 0 ? errno : ELOOP;
		return false;
	}
	snprintf(path + size, sizeof(path) - (size_t)size, "/%s", walk->rest);
	return set_rest(walk, path);
}

static bool step(struct walk *walk, const char *name)
{
	SF_CLEANUP(close) int next = -1;
	struct stat status;

	if (strcmp(name, "..") == 0 && is_root(walk))
		return true;
	next = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, &status) != 0)
		return false;
	return S_ISLNK(status.st_mode) ? follow(walk, next) : go_to(walk, sf_steal_fd(&next));
}

static bool begin(struct walk *walk, const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	return go_to(walk, openat(walk->root, ".", flags)) && set_rest(walk, path);
}

int sf_foreign_find(int root, const char *path)
{
	struct walk walk = { .root = root, .at = -1 };
	char name[PATH_MAX];
	bool found = begin(&walk, path);
	int error;

	while (found && next_component(&walk, name))
		found = step(&walk, name);
	if (found)
		return walk.at;
	error = errno;
	if (walk.at >= 0)
		close(walk.at);
	errno = error;
	return -1;
}

static bool is_made_by_kernel(int found)
{
	struct statfs about;

	if (fstatfs(found, &about) != 0)
		return true;
	for (size_t i = 0; i < sizeof(made_by_kernel) / sizeof(made_by_kernel[0]); i++) {
		if ((uint32_t)about.f_type == made_by_kernel[i])
			return true;
	}
	return false;
}

bool sf_foreign_open_found(int found, const char *name, int *ret, struct sf_error *err)
{
	char again[sizeof("/proc/thread-self/fd/") + 3 * sizeof(int)];
	struct stat status;
	int fd;

	if (fstat(found, &status) != 0)
		return sf_fail_os(err, "cannot open %s", name);
	if (!S_ISREG(status.st_mode) || is_made_by_kernel(found))
		return sf_fail(err, SF_E_INPUT, "cannot open %s: it is not a regular file", name);
	/* Of the thread: inside a program some have a table of descriptors of their own (os/own_fd.h). */
	snprintf(again, sizeof(again), "/proc/thread-self/fd/%d", found);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return sf_fail_os(err, "cannot open %s", name);
	*ret = fd;
	return true;
}

bool sf_foreign_open(int root, const char *path, int *ret, struct sf_error *err)
{
	SF_CLEANUP(close) int found = sf_foreign_find(root, path);

	if (found < 0)
		return sf_fail_os(err, "cannot open %s", path);
	return sf_foreign_open_found(found, path, ret, err);
}

/* As of a recording that root made: it is for its owner alone. */
static bool hint_at_owner(int found, struct sf_error *err)
{
	struct stat status;

	if (!err || err->os_errno != EACCES || fstat(found, &status) != 0 || status.st_uid == geteuid())
		return false;
	return sf_fail_hint(err, "It belongs to user %u: be that user (sudo), or have its owner changed (chown).", (unsigned)status.st_uid);
}

bool sf_foreign_open_user(const char *path, int *ret, struct sf_error *err)
{
	SF_CLEANUP(close) int found = open(path, O_PATH | O_CLOEXEC);

	if (found < 0)
		return sf_fail_os(err, "cannot read %s", path);
	return sf_foreign_open_found(found, path, ret, err) || hint_at_owner(found, err);
}
