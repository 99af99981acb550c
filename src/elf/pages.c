/* SPDX-License-Identifier: Apache-2.0 */
/* Reading pieces of a file into anonymous mappings, each piece once. */
#include "elf/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static bool read_all(int fd, uint8_t *to, uint64_t offset, size_t size)
{
	while (size) {
		ssize_t n = pread(fd, to, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return true;
}

static const uint8_t *find(const struct sf_elf_pages *pages, uint64_t offset, size_t size)
{
	for (size_t i = 0; i < pages->pieces.n; i++) {
		if (pages->pieces.items[i].offset == offset && pages->pieces.items[i].size == size)
			return pages->pieces.items[i].bytes;
	}
	return NULL;
}

const uint8_t *sf_elf_pages_read(struct sf_elf_pages *pages, int fd, uint64_t offset, size_t size)
{
	const uint8_t *found = find(pages, offset, size);
	struct sf_elf_piece piece = { .offset = offset, .size = size };

	if (found)
		return found;
	piece.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (piece.bytes == MAP_FAILED) {
		pages->no_memory = true;
		return NULL;
	}
	if (read_all(fd, piece.bytes, offset, size)) {
		if (sf_vec_push(&pages->pieces, piece))
			return piece.bytes;
		pages->no_memory = true;
	}
	munmap(piece.bytes, size);
	return NULL;
}

void sf_elf_pages_free(struct sf_elf_pages *pages)
{
	for (size_t i = 0; i < pages->pieces.n; i++)
		munmap(pages->pieces.items[i].bytes, pages->pieces.items[i].size);
	sf_vec_deinit(&pages->pieces);
}
