/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds sections of an ELF file by their names, and decompresses them. Finds the unwind data among them: .debug_frame, and
 * .eh_frame, also without section headers.
 */
#include <string.h>

#include "elf/file.h"
#include "frozen/memory/bytes.h"

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

/* --- unwind data --- */

/* The address of a section, whether or not it has bytes; 0 if it is not there. */
static uint64_t address_of(struct sf_elf *elf, const char *name)
{
	GElf_Shdr header;

	return sf_elf_find_section(elf->elf, name, &header) ? header.sh_addr : 0;
}

/*
 * .eh_frame_hdr: version, three encodings, and the address of .eh_frame (LSB Core 5.0, section 10.6.2). Its search table is for
 * those who look up one address, and may be missing.
 */
static bool read_eh_frame_address(struct sf_elf *elf, uint64_t *ret)
{
	struct sf_pointers pointers = { .address_size = 8 };
	struct sf_bytes bytes = { 0 };
	GElf_Phdr segment;
	uint8_t encoding;

	if (!sf_elf_find_segment(elf, PT_GNU_EH_FRAME, &segment) || segment.p_filesz < 8)
		return false;
	bytes.at = sf_elf_read(elf, segment.p_offset, segment.p_filesz < 32 ? segment.p_filesz : 32);
	if (!bytes.at)
		return false;
	bytes.end = bytes.at + (segment.p_filesz < 32 ? segment.p_filesz : 32);
	pointers.start = bytes.at;
	pointers.address = pointers.data = segment.p_vaddr;
	if (sf_bytes_u8(&bytes) != 1)
		return false;
	encoding = sf_bytes_u8(&bytes);
	sf_bytes_take(&bytes, 2);
	return sf_pointer_read(&pointers, &bytes, encoding, ret);
}

/* From the address in .eh_frame_hdr to the end of its segment, which is not its own end. */
static bool eh_frame_by_segment(struct sf_elf *elf, struct sf_cfi *ret)
{
	GElf_Phdr segment;
	uint64_t address, past, size, offset;
	const uint8_t *bytes;

	if (!read_eh_frame_address(elf, &address) || !sf_elf_find_loaded(elf, address, 0, &segment))
		return false;
	past = address - segment.p_vaddr;
	size = segment.p_filesz - past;
	if (__builtin_add_overflow(segment.p_offset, past, &offset) || !sf_elf_spend(elf, size, true))
		return false;
	bytes = sf_elf_read(elf, offset, size);
	if (!bytes)
		return false;
	*ret = (struct sf_cfi){
		.bytes = bytes, .size = size, .address = address, .eh = true, .ends_at_zero = true, .work = elf->work,
	};
	return true;
}

bool sf_elf_eh_frame(struct sf_elf *elf, struct sf_cfi *ret)
{
	struct sf_section section;

	if (!sf_elf_section(elf, ".eh_frame", &section))
		return eh_frame_by_segment(elf, ret);
	*ret = (struct sf_cfi){
		.bytes = section.bytes, .size = section.size, .address = section.address,
		.eh = true, .text = address_of(elf, ".text"), .data = address_of(elf, ".got"),
		.work = elf->work,
	};
	return true;
}

bool sf_elf_debug_frame(struct sf_elf *elf, struct sf_cfi *ret)
{
	struct sf_section section;

	if (!sf_elf_section(elf, ".debug_frame", &section) && !sf_elf_section(elf, ".zdebug_frame", &section))
		return false;
	*ret = (struct sf_cfi){
		.bytes = section.bytes, .size = section.size, .address = section.address, .work = elf->work,
	};
	return true;
}
