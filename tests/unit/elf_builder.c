/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: file header, program headers, the parts, section names, section headers; all
 * 16-aligned.
 */
#include "elf_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PARTS 12

struct layout {
	Elf64_Ehdr header;
	Elf64_Phdr segments[MAX_PARTS];
	Elf64_Shdr sections[MAX_PARTS + 2];
	char names[256];
	size_t names_size;
	uint64_t offsets[MAX_PARTS];
	uint64_t end;
};

static uint64_t take(struct layout *layout, size_t size)
{
	uint64_t offset = (layout->end + 15) & ~UINT64_C(15);

	layout->end = offset + size;
	return offset;
}

static uint32_t add_name(struct layout *layout, const char *name)
{
	uint32_t at = (uint32_t)layout->names_size;

	assert(at + strlen(name) < sizeof(layout->names));
	strcpy(layout->names + at, name);
	layout->names_size += strlen(name) + 1;
	return at;
}

static void add_part(struct layout *layout, const struct elf_part *part, uint64_t offset)
{
	if (part->segment)
		layout->segments[layout->header.e_phnum++] = (Elf64_Phdr){
			.p_type = part->segment, .p_flags = part->segment_flags,
			.p_offset = offset, .p_vaddr = part->address, .p_filesz = part->size,
			.p_memsz = part->memory_size ? part->memory_size : part->size,
			.p_align = 4,
		};
	if (part->name)
		layout->sections[layout->header.e_shnum++] = (Elf64_Shdr){
			.sh_name = add_name(layout, part->name), .sh_type = SHT_PROGBITS,
			.sh_flags = part->section_flags, .sh_addr = part->address,
			.sh_offset = offset, .sh_size = part->size, .sh_addralign = 1,
		};
}

static void lay_out(struct layout *layout, const struct elf_description *description)
{
	layout->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = description->machine, .e_version = EV_CURRENT,
		.e_entry = description->entry, .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 1,
	};
	layout->names_size = 1;
	take(layout, sizeof(Elf64_Ehdr));
	layout->header.e_phoff = take(layout, sizeof(layout->segments));
	for (size_t i = 0; i < description->n_parts; i++) {
		layout->offsets[i] = take(layout, description->parts[i].size);
		add_part(layout, &description->parts[i], layout->offsets[i]);
	}
	if (description->without_sections) {
		layout->header.e_shnum = layout->header.e_shentsize = 0;
		return;
	}
	layout->header.e_shstrndx = layout->header.e_shnum;
	layout->sections[layout->header.e_shnum++] = (Elf64_Shdr){
		.sh_name = add_name(layout, ".shstrtab"), .sh_type = SHT_STRTAB,
		.sh_offset = take(layout, sizeof(layout->names)),
		.sh_size = sizeof(layout->names), .sh_addralign = 1,
	};
	layout->header.e_shoff = take(layout, sizeof(layout->sections));
}

void *elf_build(const struct elf_description *description, size_t *size_ret)
{
	struct layout layout = { 0 };
	uint8_t *file;

	assert(description->n_parts <= MAX_PARTS);
	lay_out(&layout, description);
	file = calloc(1, layout.end);
	assert(file);
	memcpy(file, &layout.header, sizeof(layout.header));
	memcpy(file + layout.header.e_phoff, layout.segments, sizeof(layout.segments));
	for (size_t i = 0; i < description->n_parts; i++) {
		if (description->parts[i].size)
			memcpy(file + layout.offsets[i], description->parts[i].bytes,
			       description->parts[i].size);
	}
	if (layout.header.e_shoff) {
		memcpy(file + layout.sections[layout.header.e_shstrndx].sh_offset, layout.names,
		       sizeof(layout.names));
		memcpy(file + layout.header.e_shoff, layout.sections, sizeof(layout.sections));
	}
	*size_ret = layout.end;
	return file;
}

int elf_build_fd(const struct elf_description *description)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	size_t size;
	void *file = elf_build(description, &size);

	assert(fd >= 0);
	if (write(fd, file, size) != (ssize_t)size)
		abort();
	free(file);
	return fd;
}
