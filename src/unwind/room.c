/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a file's bytes, in a file without a name or in anonymous memory. */
#include "unwind/room.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/whole_io.h"

#define PIECE ((size_t)128 << 10)

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static bool spare;

void sf_room_spare_memory(void)
{
	spare = true;
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

bool sf_room_fill(int folder, int fd, size_t size, void **ret)
{
	void *block = spare ? fill_file(folder, fd, size) : MAP_FAILED;

	if (block == MAP_FAILED && lseek(fd, 0, SEEK_SET) == 0)
		block = fill_anonymous(fd, size);
	if (block == MAP_FAILED)
		return false;
	*ret = block;
	return true;
}
