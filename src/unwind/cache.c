/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of unwind tables on disk.
 *
 * Files are written under a temporary name and renamed, so a reader sees a whole file or none,
 * and two writers of one table do no harm: both write the same.
 */
#include "unwind/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "unwind/rows.h"

/* DIGEST-ARCH: 64 digits, and room for an architecture's name. */
#define NAME_SIZE 96
#define TEMPORARY ".new-"

#define PIECE ((size_t)128 << 10)

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static bool uses_files;

void sf_cache_use_files(void)
{
	uses_files = true;
}

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

static char folder_path[PATH_MAX];
static bool has_folder_path;

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

int sf_cache_open(void)
{
	SF_CLEANUP(close) int folder = -1;
	struct stat status;
	char name[32];

	snprintf(name, sizeof(name), "tables-%u", SF_TABLE_VERSION);
	folder = open_below(open_below(open_user_cache(), "stillframe", O_NOFOLLOW), name,
			    O_NOFOLLOW);
	if (folder < 0 || fstat(folder, &status) != 0 || !is_ours(&status))
		return -1;
	return sf_steal_fd(&folder);
}

bool sf_cache_id(char ret[SF_CACHE_ID])
{
	SF_CLEANUP(close) int folder = sf_cache_open();
	struct stat status;

	if (folder < 0 || fstat(folder, &status) != 0)
		return false;
	snprintf(ret, SF_CACHE_ID, "%llx:%llx", (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino);
	return true;
}

static void format_name(const struct sf_cache_key *key, char ret[NAME_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(key->made_from); i++)
		n += (size_t)snprintf(ret + n, NAME_SIZE - n, "%02x", key->made_from[i]);
	snprintf(ret + n, NAME_SIZE - n, "-%s", key->arch->name);
}

static bool is_for(const struct sf_table_header *header, const struct sf_cache_key *key)
{
	return header->elf_machine == key->arch->elf_machine &&
	       memcmp(header->made_from, key->made_from, sizeof(header->made_from)) == 0;
}

static bool is_whole(const void *block, size_t size, const struct sf_cache_key *key)
{
	const struct sf_table_header *header = block;
	struct sf_table table;

	return sf_table_init(&table, block, size) && header->size == size && is_for(header, key) &&
	       header->checksum == sf_rows_checksum(block, size);
}

/*
 * Whose pages come from a disk of this machine. A network's or a FUSE server may fail to give them, and then a mapping is
 * a SIGBUS, or a thread that never goes on; a tmpfs gives nothing back.
 */
static bool is_local(int folder)
{
	struct statfs about;

	if (fstatfs(folder, &about) != 0)
		return false;
	switch ((uint32_t)about.f_type) {
	case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	}
	return false;
}

static bool copy_all(int fd, int to, size_t size)
{
	SF_CLEANUP(free) void *piece = malloc(PIECE);

	while (piece && size) {
		size_t n = size < PIECE ? size : PIECE;

		if (!sf_read_all(fd, piece, n) || !sf_write_all(to, piece, n))
			return false;
		size -= n;
	}
	return piece;
}

/* O_EXCL: it never gets a name. Once its descriptor is closed only its mapping leads to it. */
static void *fill_file(int folder, int fd, size_t size)
{
	const int flags = O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC;
	SF_CLEANUP(close) int copy = is_local(folder) ? openat(folder, ".", flags, 0600) : -1;

	if (copy < 0 || !copy_all(fd, copy, size))
		return MAP_FAILED;
	return mmap(NULL, size, PROT_READ, MAP_PRIVATE, copy, 0);
}

/* Read-only in the end: nothing can write to it by mistake. */
static void *fill_anonymous(int fd, size_t size)
{
	void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return MAP_FAILED;
	if (sf_read_all(fd, block, size) && mprotect(block, size, PROT_READ) == 0)
		return block;
	munmap(block, size);
	return MAP_FAILED;
}

/*
 * The first `size` bytes of the file behind `fd`, in `folder`, in memory that nothing else can change. The
 * file itself is not mapped, because the user's other programs can shorten it at any time. Access to a page
 * that a mapped file does not have any more raises SIGBUS, which in the agent would end the watched program.
 * On a network file system a removal by another machine is enough.
 */
static bool read_copy(int folder, int fd, size_t size, void **ret)
{
	void *block = uses_files ? fill_file(folder, fd, size) : MAP_FAILED;

	if (block == MAP_FAILED && lseek(fd, 0, SEEK_SET) == 0)
		block = fill_anonymous(fd, size);
	if (block == MAP_FAILED)
		return false;
	*ret = block;
	return true;
}

static bool load(int folder, int fd, const struct stat *status, const struct sf_cache_key *key,
		 void **ret, size_t *size_ret)
{
	const size_t size = (size_t)status->st_size;
	void *block;

	if (status->st_size < (off_t)sizeof(struct sf_table_header) ||
	    (uint64_t)status->st_size > SF_CACHE_LIMIT || !read_copy(folder, fd, size, &block))
		return false;
	if (!is_whole(block, size, key)) {
		munmap(block, size);
		return false;
	}
	*ret = block;
	*size_ret = size;
	return true;
}

bool sf_cache_get(int folder, const struct sf_cache_key *key, void **ret, size_t *size_ret)
{
	SF_CLEANUP(close) int fd = -1;
	struct stat status;
	char name[NAME_SIZE];

	format_name(key, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) ||
	    !load(folder, fd, &status, key, ret, size_ret))
		return false;
	futimens(fd, NULL); /* used now, for sf_cache_prune; no harm if it fails */
	return true;
}

/* No fsync: after a crash of the machine the checksum tells. */
static bool write_file(int folder, const char *name, const void *block, size_t size)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	SF_CLEANUP(close) int fd = openat(folder, name, flags, 0600);

	return fd >= 0 && sf_write_all(fd, block, size);
}

bool sf_cache_put(int folder, const struct sf_cache_key *key, const void *block, size_t size)
{
	char name[NAME_SIZE], temporary[64];
	uint64_t number;

	if (!is_for(block, key) ||
	    getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return false;
	format_name(key, name);
	snprintf(temporary, sizeof(temporary), TEMPORARY "%016llx", (unsigned long long)number);
	if (!write_file(folder, temporary, block, size) ||
	    renameat(folder, temporary, folder, name) != 0) {
		unlinkat(folder, temporary, 0);
		return false;
	}
	sf_cache_prune(folder, SF_CACHE_LIMIT);
	return true;
}

/*
 * The size of all files, and the name of the one used least recently. Temporary files count, too: what a
 * killed writer left behind goes when it is the oldest.
 */
static uint64_t find_oldest(int folder, char ret[NAME_SIZE])
{
	SF_CLEANUP(close) int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SF_CLEANUP(closedir) DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
	struct timespec oldest = { .tv_sec = INT64_MAX };
	struct dirent *entry;
	uint64_t total = 0;

	if (stream)
		sf_steal_fd(&copy);
	while (stream && (entry = readdir(stream))) {
		const struct timespec *used;
		struct stat status;

		if (strlen(entry->d_name) >= NAME_SIZE ||
		    fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		total += (uint64_t)status.st_size;
		used = &status.st_mtim;
		if (used->tv_sec > oldest.tv_sec ||
		    (used->tv_sec == oldest.tv_sec && used->tv_nsec >= oldest.tv_nsec))
			continue;
		oldest = *used;
		strcpy(ret, entry->d_name);
	}
	return total;
}

void sf_cache_prune(int folder, uint64_t limit)
{
	char oldest[NAME_SIZE];

	while (find_oldest(folder, oldest) > limit && unlinkat(folder, oldest, 0) == 0)
		;
}
