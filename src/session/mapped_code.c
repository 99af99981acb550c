/* SPDX-License-Identifier: Apache-2.0 */
/* Reads code of processes that have ended from the files that they had mapped. */
#include "session/mapped_code.h"

#include <string.h>
#include <unistd.h>

#include "frozen/unwind/code_map.h"
#include "os/process.h"

/* Where the file has the byte that is linked to run at `address`. */
static bool find_offset(const struct sf_image *image, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < image->n_code; i++) {
		const struct sf_elf_code *code = &image->code[i];

		if (address < code->address || address - code->address >= code->size)
			continue;
		*ret = code->offset + (address - code->address);
		return true;
	}
	return false;
}

/* The piece that begins at `addr`, as far as the file and the mapping have it. */
static void read_piece(struct sf_mapped_code *code, uint64_t addr)
{
	const struct sf_region *region = sf_code_map_find(code->still->map, addr);
	const struct sf_image *image = region && region->image ? sf_images_get(code->images, region->image) : NULL;
	uint64_t offset, size = SF_MAPPED_CODE_PIECE;
	ssize_t n;

	code->piece_start = addr;
	code->piece_size = 0;
	if (!image || image->fd < 0 || !find_offset(image, addr - region->bias, &offset))
		return;
	if (size > region->end - addr)
		size = region->end - addr;
	n = pread(image->fd, code->piece, size, (off_t)offset);
	code->piece_size = n > 0 ? (uint64_t)n : 0;
}

static bool is_in_piece(const struct sf_mapped_code *code, uint64_t addr, size_t size)
{
	return size <= code->piece_size && addr - code->piece_start <= code->piece_size - size;
}

static bool read_file(struct sf_mapped_code *code, void *ret, uint64_t addr, size_t size)
{
	if (!is_in_piece(code, addr, size)) {
		if (!sf_process_is_over(code->still->pid))
			return false;
		read_piece(code, addr);
	}
	if (!is_in_piece(code, addr, size))
		return false;
	memcpy(ret, code->piece + (addr - code->piece_start), size);
	return true;
}

static bool read_code(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct sf_mapped_code *code = reader->arg;
	struct sf_reader own = *reader;

	own.read = code->own.read;
	own.arg = code->own.arg;
	return own.read(&own, ret, addr, size) || read_file(code, ret, addr, size);
}

void sf_mapped_code_begin(struct sf_mapped_code *code, struct sf_still *still, struct sf_images *images)
{
	code->own = still->memory;
	code->still = still;
	code->images = images;
	code->piece_start = code->piece_size = 0;
	if (!code->own.read)
		return;
	still->memory.read = read_code;
	still->memory.arg = code;
}

void sf_mapped_code_end(const struct sf_mapped_code *code, struct sf_still *still)
{
	still->memory.read = code->own.read;
	still->memory.arg = code->own.arg;
}
