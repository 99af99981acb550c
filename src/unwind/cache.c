/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of unwind tables on disk. Two writers of one table do no harm: both write the same. */
#include "unwind/cache.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/whole_io.h"
#include "unwind/rows.h"

#define PIECE ((size_t)32 << 10) /* on a stack, whose pages are there for the next table: those of an allocation are all new each time */

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static int open_folder(void)
{
	char name[32];

	snprintf(name, sizeof(name), "tables-%u", SF_TABLE_VERSION);
	return sf_cache_folder_open(name);
}

bool sf_cache_open(struct sf_cache *ret, bool in_file)
{
	*ret = (struct sf_cache){ .folder = open_folder(), .in_file = in_file, .file = -1 };
	return ret->folder >= 0;
}

void sf_cache_close(struct sf_cache *cache)
{
	if (cache->folder >= 0)
		close(cache->folder);
	if (cache->file >= 0)
		close(cache->file);
	cache->folder = cache->file = -1;
}

bool sf_cache_id(char ret[SF_CACHE_ID])
{
	SF_CLEANUP(close) int folder = open_folder();
	struct stat status;

	if (folder < 0 || fstat(folder, &status) != 0)
		return false;
	snprintf(ret, SF_CACHE_ID, "%llx:%llx", (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino);
	return true;
}

/* DIGEST-ARCH: 64 digits, and room for an architecture's name. */
static void format_name(const struct sf_cache_key *key, char ret[SF_CACHE_NAME])
{
	char *end = sf_hex(key->made_from, sizeof(key->made_from), ret);

	snprintf(end, SF_CACHE_NAME - (size_t)(end - ret), "-%s", key->arch->name);
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
	uint8_t piece[PIECE];

	while (size) {
		size_t n = size < PIECE ? size : PIECE;

		if (!sf_read_all(fd, piece, n) || !sf_write_all(to, piece, n))
			return false;
		size -= n;
	}
	return true;
}

/*
 * O_EXCL: it never gets a name. Once its descriptor is closed only mappings lead to it. One file for many tables, since ext4 takes
 * half a millisecond to find an inode that no file had in the last seconds, where many files come and go.
 */
static bool open_file(struct sf_cache *cache)
{
	const int flags = O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC;

	if (cache->in_file && cache->file < 0)
		cache->file = is_local(cache->folder) ? openat(cache->folder, ".", flags, 0600) : -1;
	cache->in_file = cache->file >= 0;
	return cache->in_file;
}

/* Behind what the file has, from a page's beginning on. */
static void *fill_file(struct sf_cache *cache, int fd, size_t size)
{
	const off_t page = sysconf(_SC_PAGESIZE), begin = (cache->end + page - 1) / page * page;

	if (!open_file(cache) || lseek(cache->file, begin, SEEK_SET) != begin || !copy_all(fd, cache->file, size))
		return MAP_FAILED;
	cache->end = begin + (off_t)size;
	return mmap(NULL, size, PROT_READ, MAP_PRIVATE, cache->file, begin);
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
 * The first `size` bytes of the file behind `fd` in memory that nothing else can change. The
 * cache's file itself is not mapped, because the user's other programs can shorten it at any time. Access to a page
 * that a mapped file does not have any more raises SIGBUS, which in the agent would end the watched program.
 * On a network file system a removal by another machine is enough.
 */
static bool read_copy(struct sf_cache *cache, int fd, size_t size, void **ret)
{
	void *block = fill_file(cache, fd, size);

	if (block == MAP_FAILED && lseek(fd, 0, SEEK_SET) == 0)
		block = fill_anonymous(fd, size);
	if (block == MAP_FAILED)
		return false;
	*ret = block;
	return true;
}

static bool load(struct sf_cache *cache, int fd, size_t size, const struct sf_cache_key *key, void **ret)
{
	void *block;

	if (size < sizeof(struct sf_table_header) || size > SF_CACHE_LIMIT || !read_copy(cache, fd, size, &block))
		return false;
	if (!is_whole(block, size, key)) {
		munmap(block, size);
		return false;
	}
	*ret = block;
	return true;
}

bool sf_cache_get(struct sf_cache *cache, const struct sf_cache_key *key, void **ret, size_t *size_ret)
{
	SF_CLEANUP(close) int fd = -1;
	char name[SF_CACHE_NAME];
	size_t size;

	format_name(key, name);
	fd = sf_cache_file_open(cache->folder, name, &size);
	if (fd < 0 || !load(cache, fd, size, key, ret))
		return false;
	*size_ret = size;
	return true;
}

bool sf_cache_put(const struct sf_cache *cache, const struct sf_cache_key *key, const void *block, size_t size)
{
	const struct iovec piece = { .iov_base = (void *)block, .iov_len = size };
	char name[SF_CACHE_NAME];

	if (!is_for(block, key))
		return false;
	format_name(key, name);
	if (!sf_cache_file_put(cache->folder, name, &piece, 1))
		return false;
	sf_cache_prune(cache->folder, SF_CACHE_LIMIT);
	return true;
}
