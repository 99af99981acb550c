/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the unwind data of an ELF file: .eh_frame, also without section headers, and .debug_frame. */
#include "elf/file.h"
#include "frozen/memory/bytes.h"

/* The address of a section, whether or not it has bytes; 0 if it is not there. */
static uint64_t address_of(struct sf_elf *elf, const char *name)
{
	GElf_Shdr header;

	return sf_elf_find_section(elf->elf, name, &header) ? header.sh_addr : 0;
}

/*
 * .eh_frame_hdr: version, three encodings, and the address of .eh_frame (LSB Core 5.0, section
 * 10.6.2). Its search table is for those who look up one address, and may be missing.
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

	if (!read_eh_frame_address(elf, &address) ||
	    !sf_elf_find_loaded(elf, address, 0, &segment))
		return false;
	past = address - segment.p_vaddr;
	size = segment.p_filesz - past;
	if (__builtin_add_overflow(segment.p_offset, past, &offset) ||
	    !sf_elf_spend(elf, size, true))
		return false;
	bytes = sf_elf_read(elf, offset, size);
	if (!bytes)
		return false;
	*ret = (struct sf_cfi){
		.bytes = bytes, .size = size, .address = address, .eh = true, .ends_at_zero = true,
		.work = elf->work,
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

	if (!sf_elf_section(elf, ".debug_frame", &section) &&
	    !sf_elf_section(elf, ".zdebug_frame", &section))
		return false;
	*ret = (struct sf_cfi){
		.bytes = section.bytes, .size = section.size, .address = section.address,
		.work = elf->work,
	};
	return true;
}
