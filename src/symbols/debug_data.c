/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata ("MiniDebugInfo"): an xz-packed ELF file with the local function symbols. */
#include <lzma.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbols/debug_file.h"

/* Fedora's largest is below 10 MB unpacked; a bomb of 1 MB could make 7 GB. */
#define MAX_UNPACKED ((size_t)256 << 20)
#define MAX_DECODER_MEMORY ((uint64_t)128 << 20)

struct packed {
	const unsigned char *bytes;
	size_t size;
};

/* Unpacks into a buffer of this size; LZMA_BUF_ERROR when it is too small. */
static lzma_ret unpack_into(const struct packed *packed, void *buffer, size_t size,
			    size_t *size_ret)
{
	uint64_t memory = MAX_DECODER_MEMORY;
	size_t in = 0;

	*size_ret = 0;
	return lzma_stream_buffer_decode(&memory, 0, NULL, packed->bytes, &in, packed->size,
					 buffer, size_ret, size);
}

static void *unpack(const struct packed *packed, size_t *size_ret)
{
	for (size_t room = packed->size * 8 + 4096; room <= MAX_UNPACKED; room *= 4) {
		void *buffer = malloc(room);
		lzma_ret result;

		if (!buffer)
			return NULL;
		result = unpack_into(packed, buffer, room, size_ret);
		if (result == LZMA_OK)
			return buffer;
		free(buffer);
		if (result != LZMA_BUF_ERROR)
			return NULL;
	}
	return NULL;
}

bool sf_debug_file_unpack(Elf *main, struct sf_elf_file *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = sf_elf_file_section(main, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	struct packed packed;
	size_t size;
	void *memory;

	if (!data || !data->d_buf || data->d_size > MAX_UNPACKED / 8)
		return false;
	packed = (struct packed){ data->d_buf, data->d_size };
	memory = unpack(&packed, &size);
	return memory && sf_elf_file_take_memory(memory, size, ret);
}
