/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the perf map of a process. */
#include "target/perf_map_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "os/task.h"

#define STARTS_PER_S 100 /* the unit of sf_process_start_clock() */

/* *owner_ret: whose file it has to be, if not root's. */
static int open_map(int32_t pid, char *path, size_t size, uint32_t *owner_ret)
{
	const uint32_t user = sf_process_user(pid);
	int fd = -1;

	snprintf(path, size, SF_PERF_MAP_BEGIN "%d" SF_PERF_MAP_END, sf_task_inner_id(pid, pid));
	*owner_ret = user == UINT32_MAX ? geteuid() : user;
	if (user == UINT32_MAX)
		sf_foreign_open(AT_FDCWD, path, &fd, NULL);
	else
		fd = sf_process_open_path(sf_process_live_id(pid), path);
	return fd;
}

/* An earlier process with the same number may have left its map. Both ages are in seconds. */
static bool is_left_behind(int32_t pid, const struct stat *status)
{
	const uint64_t clock = sf_process_start_clock();
	struct sf_program program;
	struct timespec now;

	if (!sf_process_program(pid, &program) || clock < program.started || clock_gettime(CLOCK_REALTIME, &now) != 0)
		return false;
	return now.tv_sec - status->st_mtim.tv_sec > (int64_t)((clock - program.started) / STARTS_PER_S) + 1;
}

static bool is_own(int32_t pid, int fd, uint32_t owner, struct stat *status_ret)
{
	return fstat(fd, status_ret) == 0 && (status_ret->st_uid == 0 || status_ret->st_uid == owner) &&
	       !is_left_behind(pid, status_ret);
}

struct sf_image *sf_perf_map_file(struct sf_images *images, int32_t pid)
{
	struct sf_image_seen seen = { 0 };
	struct stat status;
	uint32_t owner;
	char path[64];
	SF_CLEANUP(close) int fd = open_map(pid, path, sizeof(path), &owner);

	if (fd < 0 || !is_own(pid, fd, owner, &status))
		return NULL;
	seen.path = path;
	seen.inode = status.st_ino;
	seen.device = status.st_dev;
	return sf_images_add(images, pid, &seen);
}
