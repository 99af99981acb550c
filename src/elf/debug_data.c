/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata ("MiniDebugInfo" in the GDB manual): an ELF file, packed with xz. */
#include <lzma.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"

/*
 * Fedora's largest is below 10 MB unpacked; xz can promise several thousand times what it is
 * given.
 */
#define MAX_UNPACKED ((size_t)32 << 20)
#define MAX_DECODER_MEMORY ((uint64_t)40 << 20) /* xz -8 */

/* Room for what comes next: twice as much, within the bound. */
static bool grow(struct sf_elf *elf, uint8_t **bytes, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity * 2 : 256 << 10;
	uint8_t *grown;

	if (wanted > MAX_UNPACKED || !sf_elf_spend(elf, wanted - *capacity, true))
		return false;
	grown = realloc(*bytes, wanted);
	if (!grown) {
		elf->no_memory = true;
		return false;
	}
	*bytes = grown;
	*capacity = wanted;
	return true;
}

static bool unpack_stream(struct sf_elf *elf, lzma_stream *stream, uint8_t **ret,
			  size_t *size_ret)
{
	SF_CLEANUP(free) uint8_t *bytes = NULL;
	size_t capacity = 0;
	lzma_ret result = LZMA_OK;

	while (result == LZMA_OK) {
		size_t done = stream->total_out;

		if (done == capacity && !grow(elf, &bytes, &capacity))
			return false;
		stream->next_out = bytes + done;
		stream->avail_out = capacity - done;
		result = lzma_code(stream, LZMA_FINISH);
	}
	if (result != LZMA_STREAM_END)
		return false;
	*size_ret = stream->total_out;
	*ret = sf_steal(&bytes);
	return true;
}

static bool unpack(struct sf_elf *elf, const struct sf_section *section, uint8_t **ret,
		   size_t *size_ret)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	bool ok;

	if (lzma_stream_decoder(&stream, MAX_DECODER_MEMORY, 0) != LZMA_OK)
		return false;
	stream.next_in = section->bytes;
	stream.avail_in = section->size;
	ok = unpack_stream(elf, &stream, ret, size_ret);
	lzma_end(&stream);
	return ok;
}

bool sf_debug_data_find(struct sf_elf *elf, struct sf_section *ret)
{
	return sf_elf_section(elf, ".gnu_debugdata", ret);
}

bool sf_debug_data_unpack(struct sf_elf *elf, const struct sf_section *packed, struct sf_elf *ret)
{
	struct sf_error err;
	uint8_t *bytes;
	size_t size;

	if (!unpack(elf, packed, &bytes, &size))
		return false;
	if (!sf_elf_open_memory(bytes, size, ret, &err)) {
		elf->no_memory = err.code == SF_E_NO_MEMORY;
		return false;
	}
	sf_elf_share_work(elf, ret);
	if (ret->arch == elf->arch)
		return true;
	sf_elf_close(ret);
	return false;
}

bool sf_debug_data_open(struct sf_elf *elf, struct sf_elf *ret)
{
	struct sf_section packed;

	return sf_debug_data_find(elf, &packed) && sf_debug_data_unpack(elf, &packed, ret);
}
