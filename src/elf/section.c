/* SPDX-License-Identifier: Apache-2.0 */
/* Finds sections of an ELF file by their names, and decompresses them. Does not interpret their bytes. */
#include <string.h>

#include "elf/file.h"

/* The names of all sections. */
#define MAX_NAMES ((uint64_t)1 << 20)

/* The section with the names of sections, of which libelf reads all at the first name. */
static bool has_names(Elf *elf, size_t *ret)
{
	GElf_Shdr header;

	return elf_getshdrstrndx(elf, ret) == 0 && gelf_getshdr(elf_getscn(elf, *ret), &header) &&
	       header.sh_size <= MAX_NAMES && !(header.sh_flags & SHF_COMPRESSED);
}

Elf_Scn *sf_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header_ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!has_names(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header_ret) || header_ret->sh_type == SHT_NOBITS ||
		    header_ret->sh_type == SHT_NULL)
			continue;
		found = elf_strptr(elf, names, header_ret->sh_name);
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

/* The old form (.zdebug_*): "ZLIB", the size big-endian, the stream. */
static bool unpacked_zdebug(Elf_Scn *section, uint64_t *ret)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t size;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return false;
	memcpy(&size, (const char *)data->d_buf + 4, sizeof(size));
	*ret = __builtin_bswap64(size);
	return true;
}

/* The size in a compressed section's header is a promise by the file: counted first. */
static bool decompress(struct sf_elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       bool is_zdebug)
{
	GElf_Chdr compressed;
	uint64_t size;

	if (is_zdebug)
		return unpacked_zdebug(section, &size) && sf_elf_spend(elf, size, true) &&
		       elf_compress_gnu(section, 0, 0) >= 0;
	if (!(header->sh_flags & SHF_COMPRESSED))
		return true;
	return gelf_getchdr(section, &compressed) &&
	       sf_elf_spend(elf, compressed.ch_size, true) && elf_compress(section, 0, 0) >= 0;
}

bool sf_elf_section(struct sf_elf *elf, const char *name, struct sf_section *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = sf_elf_find_section(elf->elf, name, &header);
	const bool is_zdebug = strncmp(name, ".zdebug_", 8) == 0;
	Elf_Data *data;

	if (!section || !header.sh_size || !sf_elf_spend(elf, header.sh_size, !elf->map))
		return false;
	*ret = (struct sf_section){ .size = header.sh_size, .address = header.sh_addr };
	elf->unpacked |= is_zdebug || header.sh_flags & SHF_COMPRESSED;
	if (!elf->unpacked) {
		ret->bytes = sf_elf_read(elf, header.sh_offset, ret->size);
		return ret->bytes;
	}
	data = decompress(elf, section, &header, is_zdebug) ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_size)
		return false;
	ret->bytes = data->d_buf;
	ret->size = data->d_size;
	return ret->bytes;
}
