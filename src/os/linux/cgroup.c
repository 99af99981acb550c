/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups by their file system (kernel: Documentation/admin-guide/cgroup-v2.rst). */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/lines.h"

#define MAX_PATH 4096
#define MAX_DEPTH 32

/* Where cgroup2 is mounted: /sys/fs/cgroup, or a folder below it beside the older ones. False: nowhere. */
static bool find_mount(char *ret, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;
	bool found = false;

	while (mounts && !found && (entry = getmntent(mounts))) {
		found = strcmp(entry->mnt_type, "cgroup2") == 0;
		if (found)
			snprintf(ret, size, "%s", entry->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

static bool is_cgroup2(int fd)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

int sf_cgroup_open(const char *path, struct sf_error *err)
{
	char mount[MAX_PATH / 2], whole[MAX_PATH];
	int fd;

	if (!find_mount(mount, sizeof(mount))) {
		sf_fail(err, SF_E_UNSUPPORTED, "control groups (cgroup v2) are not mounted here");
		return -1;
	}
	snprintf(whole, sizeof(whole), "%s%s%.2000s", path[0] == '/' ? "" : mount, path[0] == '/' ? "" : "/", path);
	fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		sf_fail_os(err, "cannot open the control group %s", whole);
		return -1;
	}
	if (is_cgroup2(fd))
		return fd;
	close(fd);
	sf_fail(err, SF_E_INPUT, "%s is no control group (cgroup v2): those are below %s", whole, mount);
	return -1;
}

static bool add_own(int fd, struct sf_ids *ret)
{
	SF_CLEANUP(close) int file = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	SF_CLEANUP(lines) struct sf_lines lines = { .fd = file };
	const char *line;
	bool fine = true;

	while (fine && file >= 0 && (line = sf_lines_next(&lines))) {
		const int pid = atoi(line);

		fine = pid <= 0 || sf_vec_push(&ret->ids, pid);
	}
	return fine;
}

static bool add_all(int fd, struct sf_ids *ret, int depth)
{
	SF_CLEANUP(folder) struct sf_folder folder = { .fd = -1 };
	const char *name;
	bool fine = add_own(fd, ret);

	if (depth < MAX_DEPTH)
		(void)!sf_folder_open(&folder, fd, ".");
	while (fine && folder.fd >= 0 && (name = sf_folder_next(&folder))) {
		SF_CLEANUP(close) int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		fine = below < 0 || add_all(below, ret, depth + 1);
	}
	return fine;
}

bool sf_cgroup_processes(int fd, struct sf_ids *ret)
{
	return add_all(fd, ret, 0);
}

bool sf_cgroup_is_removed(int fd)
{
	return faccessat(fd, "cgroup.procs", F_OK, 0) != 0 && errno == ENOENT;
}
