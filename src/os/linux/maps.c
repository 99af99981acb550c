/* SPDX-License-Identifier: Apache-2.0 */
/* The memory map of a process: /proc/PID/maps, and the files behind it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/lines.h"
#include "os/linux/proc.h"
#include "os/process.h"

#define DELETED " (deleted)"

/*
 * Whether the file's name is gone, or another file's: the kernel writes that behind its path. Afterwards the path alone
 * is there.
 */
static bool cut_deleted(char *path, size_t length)
{
	const size_t rest = length > strlen(DELETED) ? length - strlen(DELETED) : 0;

	if (!rest || strcmp(path + rest, DELETED) != 0)
		return false;
	path[rest] = 0;
	return true;
}

/* Without its newline: "start-end rwxp offset major:minor inode   path" (proc_pid_maps(5)). */
static bool parse_line(char *line, struct sf_mapping *ret)
{
	unsigned major_number, minor_number;
	char permissions[8];
	int path_at = 0;
	size_t length;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &ret->start, &ret->end, permissions, &ret->offset, &major_number, &minor_number,
		   &ret->inode, &path_at) < 7 ||
	    !path_at || ret->start >= ret->end)
		return false;
	ret->device = makedev(major_number, minor_number);
	ret->readable = permissions[0] == 'r';
	ret->executable = strlen(permissions) > 2 && permissions[2] == 'x';
	ret->is_own = strlen(permissions) > 3 && permissions[1] == 'w' && permissions[3] == 'p';
	length = strlen(line);
	ret->deleted = cut_deleted(line, length);
	ret->path = line + path_at;
	return true;
}

static bool fail(int32_t pid, struct sf_error *err)
{
	return sf_fail_os(err, "cannot read the memory map of pid %d", pid);
}

bool sf_process_maps(int32_t pid, sf_mapping_fn *fn, void *arg, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = sf_proc_open(pid, 0, "maps");
	SF_CLEANUP(lines) struct sf_lines lines = { .fd = fd };
	char *line;

	if (fd < 0)
		return fail(pid, err);
	/* A name has four times PATH_MAX bytes if it is all newlines: each is printed as \012. */
	while ((line = sf_lines_next(&lines))) {
		struct sf_mapping mapping;

		if (parse_line(line, &mapping) && !fn(&mapping, arg))
			return false;
	}
	return true;
}

/* --- executable mappings by queries --- */

/* struct procmap_query of linux/fs.h, since Linux 6.11. */
struct query {
	uint64_t size, flags, address; /* what is wanted */
	uint64_t start, end, found_flags, page_size, offset, inode;
	uint32_t major_number, minor_number, name_size, build_id_size;
	uint64_t name_address, build_id_address;
};

#define QUERY _IOWR('f', 17, struct query) /* PROCMAP_QUERY */
#define READABLE 0x01u
#define WRITABLE 0x02u
#define EXECUTABLE 0x04u
#define SHARED 0x08u
#define OR_NEXT 0x10u

/* The first one that ends behind the address. A name that is too long is left out. False and errno, ENOENT: there is none. */
static bool query_next(int fd, uint64_t address, struct query *ret, char name[PATH_MAX])
{
	*ret = (struct query){
		.size = sizeof(*ret), .flags = EXECUTABLE | OR_NEXT, .address = address,
		.name_size = PATH_MAX, .name_address = (uintptr_t)name,
	};
	name[0] = 0;
	if (ioctl(fd, QUERY, ret) == 0)
		return true;
	if (errno != ENAMETOOLONG)
		return false;
	ret->name_size = 0;
	ret->name_address = 0;
	return ioctl(fd, QUERY, ret) == 0;
}

static struct sf_mapping of_query(const struct query *query, char *name)
{
	return (struct sf_mapping){
		.start = query->start, .end = query->end, .offset = query->offset, .inode = query->inode,
		.device = makedev(query->major_number, query->minor_number),
		.executable = true,
		.readable = query->found_flags & READABLE,
		.is_own = (query->found_flags & (WRITABLE | SHARED)) == WRITABLE,
		.deleted = cut_deleted(name, strlen(name)),
		.path = name,
	};
}

enum answer { ANSWER_ALL, ANSWER_PART, ANSWER_NONE };

/* ANSWER_NONE: the kernel cannot be queried, or the process has ended. */
static enum answer query_all(int fd, sf_mapping_fn *fn, void *arg)
{
	char name[PATH_MAX];
	struct query query;
	uint64_t address = 0;

	while (query_next(fd, address, &query, name)) {
		const struct sf_mapping mapping = of_query(&query, name);

		if (!fn(&mapping, arg))
			return ANSWER_PART;
		address = query.end;
	}
	if (errno == ENOENT)
		return ANSWER_ALL;
	return address ? ANSWER_PART : ANSWER_NONE;
}

struct filter {
	sf_mapping_fn *fn;
	void *arg;
};

static bool pass_executable(const struct sf_mapping *mapping, void *arg)
{
	const struct filter *filter = arg;

	return !mapping->executable || filter->fn(mapping, filter->arg);
}

/* Of its own process the agent reads the list: a system-call filter of the program may end the process for ioctl(). */
bool sf_process_code_maps(int32_t pid, sf_mapping_fn *fn, void *arg, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = pid == getpid() ? -1 : sf_proc_open(pid, 0, "maps");
	const enum answer answer = fd < 0 ? ANSWER_NONE : query_all(fd, fn, arg);
	struct filter filter = { fn, arg };

	if (answer == ANSWER_PART)
		return fail(pid, err);
	return answer == ANSWER_ALL || sf_process_maps(pid, pass_executable, &filter, err);
}

/* --- the files behind mappings --- */

int sf_process_open_root(int32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool same_file(int fd, const struct sf_mapping *mapping)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 && stat.st_ino == mapping->inode;
}

/* The file that was found, open; -1 and errno, ENXIO: it is no regular file. */
static int open_found(int found)
{
	int fd = -1;

	if (found < 0)
		return -1;
	errno = 0;
	if (!sf_foreign_open_found(found, "", &fd, NULL) && !errno)
		errno = ENXIO;
	return fd;
}

/* A link of /proc leads to the file itself, not to its name: O_PATH follows it and opens nothing. */
static int open_link(const char *path)
{
	SF_CLEANUP(close) int found = open(path, O_PATH | O_CLOEXEC);

	return open_found(found);
}

static int open_mapped(int32_t pid, const struct sf_mapping *mapping)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
		 mapping->end);
	return open_link(path);
}

/* Whether the process's program is the file of this path: its link to the program says so, also when the file is deleted. */
static bool is_program(const char *link, const struct sf_mapping *mapping)
{
	char path[PATH_MAX + sizeof(DELETED)];
	const ssize_t n = readlink(link, path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = 0;
	cut_deleted(path, strlen(path));
	return strcmp(path, mapping->path) == 0;
}

/* Each user may open the program of an own process by this link. */
static int open_program(int32_t pid, const struct sf_mapping *mapping)
{
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	if (!is_program(link, mapping))
		return -1;
	fd = open_link(link);
	if (fd < 0 || same_file(fd, mapping))
		return fd;
	close(fd);
	return -1;
}

int sf_process_open_path(int32_t pid, const char *path)
{
	SF_CLEANUP(close) int root = sf_process_open_root(pid);
	SF_CLEANUP(close) int found = root < 0 ? -1 : sf_foreign_find(root, path);

	return open_found(found);
}

int sf_process_open_mapping(int32_t pid, const struct sf_mapping *mapping)
{
	int fd = open_mapped(pid, mapping);

	if (fd < 0)
		fd = open_program(pid, mapping);
	if (fd >= 0)
		return fd;
	if (mapping->path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	fd = sf_process_open_path(pid, mapping->path);
	if (fd >= 0 && !same_file(fd, mapping)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}
