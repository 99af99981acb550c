/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image, and the file that it is read from. The mapped file itself is opened where that is possible, else what the process
 * has mapped of it is copied from its memory into a file.
 */
#include "target/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/whole_io.h"

/*
 * Copies of memory stand in for files that are gone, or that this user may not open. Together they
 * have at most so many bytes; what does not fit of one is a gap in it. For each, all mappings of its
 * process are gone through.
 */
#define MAX_MEMORY_BYTES ((uint64_t)64 << 20)
#define MAX_COPIES 64
#define MAX_OFFSET ((uint64_t)1 << 30)

/* Each open file is a descriptor. A desktop's largest programs map some hundred files. */
#define MAX_FILES 8192

bool sf_image_address(const struct sf_image *image, uint64_t offset, uint64_t *ret)
{
	return sf_elf_code_address(image->code, image->n_code, offset, ret);
}

bool sf_is_perf_map_path(const char *path)
{
	const size_t begin = sizeof(SF_PERF_MAP_BEGIN) - 1;
	size_t digits;

	if (strncmp(path, SF_PERF_MAP_BEGIN, begin) != 0)
		return false;
	digits = strspn(path + begin, "0123456789");
	return digits && strcmp(path + begin + digits, SF_PERF_MAP_END) == 0;
}

/* Takes the times of the open file, when its content is known to be the image's. */
static void note_times(struct sf_image *image)
{
	struct stat status;

	if (fstat(image->fd, &status) != 0)
		return;
	image->changed_ns = status.st_ctim.tv_sec * 1000000000LL + status.st_ctim.tv_nsec;
	image->written_ns = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
}

/*
 * A build id tells a file that was written to from one that was only renamed, or given other rights. A file without code, such
 * as the dump of a JIT compiler, may grow all the time.
 */
static bool has_other_content(const struct sf_image *image, int64_t written_ns)
{
	uint8_t build_id[SF_ELF_MAX_BUILD_ID];
	size_t size;

	if (!image->build_id_size)
		return image->n_code && image->written_ns != written_ns;
	sf_elf_build_id(image->fd, build_id, &size);
	return size != image->build_id_size || memcmp(build_id, image->build_id, size) != 0;
}

bool sf_image_is_rewritten(struct sf_image *image)
{
	const int64_t changed_ns = image->changed_ns, written_ns = image->written_ns;

	if (image->is_rewritten || image->fd < 0 || image->from_memory || image->is_perf_map || image->is_kernel)
		return image->is_rewritten;
	note_times(image);
	if (image->changed_ns == changed_ns)
		return false;
	image->is_rewritten = has_other_content(image, written_ns);
	if (image->is_rewritten && !image->note[0])
		snprintf(image->note, sizeof(image->note), "the file was written to after it had been mapped: what has no name by then has none");
	return image->is_rewritten;
}

void sf_image_close(struct sf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}

/* --- copies of memory --- */

struct memory_copy {
	struct sf_image_files *files;
	int fd;
	int32_t pid;
	const struct sf_mapping *wanted;
};

/* Copies one mapping's memory into the file at its file offset. */
static void copy_mapping(struct memory_copy *copy, const struct sf_mapping *mapping)
{
	static const size_t piece = 64 << 10;
	uint8_t *buffer = malloc(piece);
	struct sf_image_files *files = copy->files;

	for (uint64_t at = mapping->start; buffer && at < mapping->end;) {
		uint64_t left = mapping->end - at, to;
		size_t n = left < piece ? (size_t)left : piece;

		if (n > MAX_MEMORY_BYTES - files->memory_bytes || !sf_work_goes_on(files->work))
			break;
		n = sf_process_read(copy->pid, buffer, at, n);
		to = mapping->offset + (at - mapping->start);
		if (!n || !sf_file_may_end_at(to + n) || pwrite(copy->fd, buffer, n, (off_t)to) < 0)
			break;
		files->memory_bytes += n;
		at += n;
	}
	free(buffer);
}

static bool copy_if_same_file(const struct sf_mapping *mapping, void *arg)
{
	struct memory_copy *copy = arg;
	const struct sf_mapping *wanted = copy->wanted;

	if (mapping->readable && mapping->inode == wanted->inode &&
	    mapping->device == wanted->device && strcmp(mapping->path, wanted->path) == 0 &&
	    mapping->offset < MAX_OFFSET && mapping->end - mapping->start < MAX_OFFSET)
		copy_mapping(copy, mapping);
	return true;
}

/* A file with what the process has mapped of it: headers and segments, usually no section headers. */
static int open_from_memory(struct sf_image_files *files, int32_t pid, const struct sf_mapping *mapping)
{
	struct memory_copy copy = { .files = files, .pid = pid, .wanted = mapping };

	if (files->n_copies >= MAX_COPIES)
		return -1;
	files->n_copies++;
	copy.fd = memfd_create("stillframe-image", MFD_CLOEXEC);
	if (copy.fd >= 0 && strcmp(mapping->path, "[vdso]") == 0) /* the mapping is all there is */
		copy_if_same_file(mapping, &copy);
	else if (copy.fd >= 0)
		sf_process_maps(pid, copy_if_same_file, &copy, NULL);
	return copy.fd;
}

static void note_memory(struct sf_image *image, int error)
{
	const char *why = error == ESTALE  ? "it was replaced"
			  : error == ENXIO ? "it is not a regular file"
					   : sf_os_error(error);

	snprintf(image->note, sizeof(image->note), "the file cannot be opened (%s); %s", why,
		 image->fd >= 0 ? "read from the process's memory"
				: "too many have been read from memory already");
}

/* --- files --- */

/* Whether another file may be open; says so in the note where not. */
static bool may_open(const struct sf_image_files *files, struct sf_image *image)
{
	struct rlimit limit = { .rlim_cur = 0 };
	rlim_t most = MAX_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most)
		most = limit.rlim_cur / 2;
	if (files->n_open >= most)
		snprintf(image->note, sizeof(image->note), "too many files have been opened already");
	return files->n_open < most;
}

bool sf_image_seen_as(const struct sf_image_seen *seen, const uint8_t *build_id, size_t size)
{
	return seen->build_id_size == size && memcmp(seen->build_id, build_id, size) == 0;
}

/* Whether an open file is what was seen. */
static bool is_seen(int fd, const struct sf_image_seen *seen)
{
	uint8_t build_id[SF_ELF_MAX_BUILD_ID];
	struct stat status;
	size_t size;

	if (fstat(fd, &status) != 0)
		return false;
	if (!seen->build_id_size)
		return seen->inode == status.st_ino && seen->device == status.st_dev;
	sf_elf_build_id(fd, build_id, &size);
	return sf_image_seen_as(seen, build_id, size);
}

/* The file at this path, for `pid` 0 as we see it, if it is what was seen; else -1. */
static int open_seen(int32_t pid, const char *path, const struct sf_image_seen *seen)
{
	int fd = -1;

	if (path[0] != '/')
		return -1;
	if (pid)
		fd = sf_process_open_path(pid, path);
	else
		sf_foreign_open(AT_FDCWD, path, &fd, NULL);
	if (fd >= 0 && !is_seen(fd, seen)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void copy_memory(struct sf_image_files *files, struct sf_image *image, int32_t pid, const struct sf_mapping *mapping,
			int error)
{
	image->fd = open_from_memory(files, pid, mapping);
	image->from_memory = true;
	if (mapping->path[0] == '/')
		note_memory(image, error);
}

static void note_missing(struct sf_image *image)
{
	snprintf(image->note, sizeof(image->note), "the file that was mapped cannot be found any more");
}

/* Instead of the file of a process that has ended, what is at its path for us, if it is the same. */
static void open_after_end(struct sf_image *image, const struct sf_mapping *mapping)
{
	const struct sf_image_seen seen = { .inode = mapping->inode, .device = mapping->device };

	if (image->fd >= 0)
		close(image->fd); /* the part of its memory that was copied before its end */
	image->from_memory = false;
	image->note[0] = 0;
	image->fd = open_seen(0, mapping->path, &seen);
	if (image->fd < 0)
		note_missing(image);
}

/* False: the process has ended, and the file is not found without it. */
static bool open_file(struct sf_image_files *files, struct sf_image *image, int32_t pid, const struct sf_mapping *mapping)
{
	const struct sf_image_files before = *files;

	image->fd = mapping->path[0] == '/' ? sf_process_open_mapping(pid, mapping) : -1;
	if (image->fd >= 0)
		return true;
	copy_memory(files, image, pid, mapping, errno);
	if (!sf_process_is_over(pid))
		return true;
	*files = before;
	open_after_end(image, mapping);
	return image->fd >= 0;
}

static uint64_t device_of(int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_dev : 0;
}

uint64_t sf_mapping_volume(int32_t pid, const struct sf_mapping *mapping)
{
	SF_CLEANUP(close) int fd = mapping->path[0] == '/' ? sf_process_open_mapping(pid, mapping) : -1;

	return device_of(fd);
}

/*
 * Files on an overlay have a device of its own. Older kernels' lists of mappings have the device of the file below, on which no
 * other file has its number.
 */
static bool is_on_overlay(int fd)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 && status.f_type == OVERLAYFS_SUPER_MAGIC;
}

static void note_volume(struct sf_image *image)
{
	const uint64_t device = image->from_memory ? 0 : device_of(image->fd);

	image->volume = device == image->device || is_on_overlay(image->fd) ? 0 : device;
}

bool sf_image_files_open(struct sf_image_files *files, struct sf_image *image, int32_t pid, const struct sf_mapping *mapping)
{
	if (!may_open(files, image))
		return true;
	if (!open_file(files, image, pid, mapping))
		return false;
	if (image->fd >= 0) {
		files->n_open++;
		note_times(image);
		note_volume(image);
		sf_elf_build_id(image->fd, image->build_id, &image->build_id_size);
	}
	return true;
}

void sf_image_files_open_seen(struct sf_image_files *files, struct sf_image *image, int32_t pid,
			      const struct sf_image_seen *seen)
{
	image->build_id_size = seen->build_id_size;
	if (seen->build_id_size)
		memcpy(image->build_id, seen->build_id, seen->build_id_size);
	if (!may_open(files, image))
		return;
	if (pid)
		image->fd = open_seen(pid, image->path, seen);
	if (image->fd < 0)
		image->fd = open_seen(0, image->path, seen);
	files->n_open += image->fd >= 0;
	if (image->fd < 0)
		note_missing(image);
	else
		note_times(image);
}
