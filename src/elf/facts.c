/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an ELF file's build id and the address of its code from the program headers. The file is hostile input. */
#include "elf/facts.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "frozen/memory/bytes.h"

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

/* All of them by one call. Returns how many there are. */
static unsigned read_segments(int fd, Elf64_Phdr ret[MAX_SEGMENTS])
{
	Elf64_Ehdr header;
	ssize_t size;

	if (!read_header(fd, &header))
		return 0;
	size = pread(fd, ret, header.e_phnum * sizeof(ret[0]), (off_t)header.e_phoff);
	return size > 0 ? (unsigned)((size_t)size / sizeof(ret[0])) : 0;
}

/* The build id among the notes of one segment with this alignment (gABI, "Note Section"). */
static bool find_in_notes(struct sf_bytes notes, uint64_t align, uint8_t ret[SF_ELF_MAX_BUILD_ID],
			  size_t *size_ret)
{
	uint64_t mask = align == 8 ? 7 : 3;

	while (sf_bytes_left(&notes) >= sizeof(Elf64_Nhdr)) {
		uint64_t name_size = sf_bytes_u32(&notes);
		uint64_t size = sf_bytes_u32(&notes);
		uint32_t type = sf_bytes_u32(&notes);
		const uint8_t *name = sf_bytes_take(&notes, (name_size + mask) & ~mask);
		const uint8_t *bytes = sf_bytes_take(&notes, size);

		if (!name || !bytes)
			return false;
		sf_bytes_take(&notes, -size & mask);
		if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4) != 0 ||
		    !size || size > SF_ELF_MAX_BUILD_ID)
			continue;
		memcpy(ret, bytes, size);
		*size_ret = size;
		return true;
	}
	return false;
}

void sf_elf_build_id(int fd, uint8_t ret[SF_ELF_MAX_BUILD_ID], size_t *size_ret)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	uint8_t notes[MAX_NOTES];
	const unsigned n_segments = read_segments(fd, segments);

	*size_ret = 0;
	for (const Elf64_Phdr *segment = segments; segment < segments + n_segments; segment++) {
		size_t size = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);
		ssize_t n;

		if (segment->p_type != PT_NOTE)
			continue;
		n = pread(fd, notes, size, (off_t)segment->p_offset);
		if (n > 0 &&
		    find_in_notes((struct sf_bytes){ .at = notes, .end = notes + n },
				  segment->p_align, ret, size_ret))
			return;
	}
}

size_t sf_elf_code(int fd, struct sf_elf_code *ret, size_t capacity)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	const unsigned n_segments = read_segments(fd, segments);
	size_t n = 0;

	for (const Elf64_Phdr *segment = segments; segment < segments + n_segments && n < capacity; segment++) {
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			ret[n++] = (struct sf_elf_code){ segment->p_offset, segment->p_filesz, segment->p_vaddr };
	}
	return n;
}

/* A mapping starts at the page that holds the segment's first byte. */
static uint64_t before(const struct sf_elf_code *code)
{
	return code->offset & 0xfff;
}

/* The segment that is mapped from this offset on; else the one that holds it. NULL: none does. */
static const struct sf_elf_code *find_code(const struct sf_elf_code *code, size_t n, uint64_t offset)
{
	const struct sf_elf_code *found = NULL;

	for (size_t i = 0; i < n; i++) {
		const uint64_t start = code[i].offset - before(&code[i]);

		if (offset == start)
			return &code[i];
		if (!found && offset >= start && offset - start < code[i].size + before(&code[i]))
			found = &code[i];
	}
	return found;
}

bool sf_elf_code_address(const struct sf_elf_code *code, size_t n, uint64_t offset, uint64_t *ret)
{
	const struct sf_elf_code *found = find_code(code, n, offset);

	if (found)
		*ret = found->address + (offset - found->offset);
	return found;
}
