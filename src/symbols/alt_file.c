/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each Dwarf the file that its debug data shares with others, or an empty one. */
#include "symbols/alt_file.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <string.h>

#include "elf/debug_file.h"
#include "symbols/paths.h"

static bool has_build_id(const struct sf_elf *elf, const void *id, size_t size)
{
	return elf->build_id_size == size && memcmp(elf->build_id, id, size) == 0;
}

static bool open_if_same(const char *path, const void *id, size_t size, struct sf_elf *ret)
{
	if (!*path || !sf_elf_open_path(path, ret, NULL))
		return false;
	if (has_build_id(ret, id, size))
		return true;
	sf_elf_close(ret);
	return false;
}

bool sf_alt_find(Dwarf *dwarf, const struct sf_elf *file, struct sf_elf *ret)
{
	char folder[PATH_MAX] = "", linked[SF_JOINED_MAX], by_id[PATH_MAX];
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (size <= 0)
		return false;
	sf_elf_folder(file, folder);
	sf_join_path(folder, name, linked);
	if (!sf_debug_file_path(SF_DEBUG_ROOT, id, (size_t)size, by_id))
		by_id[0] = 0;
	return open_if_same(by_id, id, (size_t)size, ret) ||
	       open_if_same(linked, id, (size_t)size, ret);
}

/* An ELF file with one section of debug data, which holds no unit. */
struct empty {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[32];
	char info[8];
};

static void fill_in(struct empty *empty)
{
	static const char names[] = "\0.debug_info\0.shstrtab";
	Elf64_Ehdr *header = &empty->header;

	*empty = (struct empty){ .header = {
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct empty, sections), .e_ehsize = sizeof(*header),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2,
	} };
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(empty->names, names, sizeof(names));
	empty->sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addralign = 1,
		.sh_offset = offsetof(struct empty, info), .sh_size = sizeof(empty->info),
	};
	empty->sections[2] = (Elf64_Shdr){
		.sh_name = 13, .sh_type = SHT_STRTAB, .sh_addralign = 1,
		.sh_offset = offsetof(struct empty, names), .sh_size = sizeof(names),
	};
}

bool sf_alt_none(struct sf_elf *ret, Dwarf **dwarf_ret)
{
	struct empty *empty = malloc(sizeof(*empty));

	if (!empty)
		return false;
	fill_in(empty);
	if (!sf_elf_open_memory(empty, sizeof(*empty), ret, NULL))
		return false;
	*dwarf_ret = dwarf_begin_elf(ret->elf, DWARF_C_READ, NULL);
	if (*dwarf_ret)
		return true;
	sf_elf_close(ret);
	return false;
}
