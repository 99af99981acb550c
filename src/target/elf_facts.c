/* SPDX-License-Identifier: Apache-2.0 */
#include "target/elf_facts.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 256
#define MAX_NOTES 65536

/* System V ABI, chapters 4 and 5; only the 64-bit little-endian form, as both our targets use. */
static bool read_header(int fd, Elf64_Ehdr *ret)
{
	return pread(fd, ret, sizeof(*ret), 0) == sizeof(*ret) &&
	       memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 &&
	       ret->e_ident[EI_CLASS] == ELFCLASS64 && ret->e_ident[EI_DATA] == ELFDATA2LSB &&
	       ret->e_phentsize == sizeof(Elf64_Phdr) && ret->e_phnum <= MAX_SEGMENTS;
}

static bool read_segment(int fd, const Elf64_Ehdr *header, unsigned i, Elf64_Phdr *ret)
{
	return pread(fd, ret, sizeof(*ret), (off_t)(header->e_phoff + i * sizeof(*ret))) ==
	       sizeof(*ret);
}

/* A note: sizes and type, the name and the description, each padded to 4 bytes. */
static bool find_build_id(const uint8_t *notes, size_t size, uint8_t ret[32], size_t *size_ret)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name, description;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		description = name + (((uint64_t)note.n_namesz + 3) & ~(uint64_t)3);
		if (description + note.n_descsz > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= 32) {
			memcpy(ret, notes + description, note.n_descsz);
			*size_ret = note.n_descsz;
			return true;
		}
		description += ((uint64_t)note.n_descsz + 3) & ~(uint64_t)3;
		if (description > size)
			return false;
		at = (size_t)description;
	}
	return false;
}

void sf_elf_build_id(int fd, uint8_t ret[32], size_t *size_ret)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint8_t notes[MAX_NOTES];

	*size_ret = 0;
	if (!read_header(fd, &header))
		return;
	for (unsigned i = 0; i < header.e_phnum && read_segment(fd, &header, i, &segment); i++) {
		size_t size = segment.p_filesz < sizeof(notes) ? segment.p_filesz : sizeof(notes);
		ssize_t n;

		if (segment.p_type != PT_NOTE)
			continue;
		n = pread(fd, notes, size, (off_t)segment.p_offset);
		if (n > 0 && find_build_id(notes, (size_t)n, ret, size_ret))
			return;
	}
}

bool sf_elf_address(int fd, uint64_t offset, uint64_t *ret)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (!read_header(fd, &header))
		return false;
	for (unsigned i = 0; i < header.e_phnum && read_segment(fd, &header, i, &segment); i++) {
		/* A mapping starts at the page that holds the segment's first byte. */
		uint64_t start = segment.p_offset & ~(uint64_t)0xfff;

		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		if (offset >= start && offset - segment.p_offset + (segment.p_offset - start) <
					       segment.p_filesz + (segment.p_offset - start)) {
			*ret = segment.p_vaddr + (offset - segment.p_offset);
			return true;
		}
	}
	return false;
}
