/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a file's DWARF before libdw may read it, and forms the names of the files that it refers to. */
#include "symbols/dwarf_file.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>

/*
 * All compressed sections of a file together: libdw unpacks each when it begins. The bound is
 * absolute: a sparse file has any size that its maker likes, and zlib packs zeros a thousand times.
 */
#define MAX_UNPACKED ((uint64_t)192 << 20)

/* The size of a section in memory when it is unpacked; 0 when it is not packed. */
static bool unpacked_size(Elf_Scn *section, const GElf_Shdr *header, uint64_t *ret)
{
	GElf_Chdr compressed;
	ssize_t old_style;

	*ret = 0;
	if (header->sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(section, &compressed))
			return false;
		*ret = compressed.ch_size;
		return true;
	}
	old_style = dwelf_scn_gnu_compressed_size(section);
	if (old_style > 0)
		*ret = (uint64_t)old_style;
	return true;
}

bool sf_dwarf_is_sane(Elf *elf)
{
	uint64_t total = 0;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		uint64_t size;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		if (!unpacked_size(section, &header, &size) ||
		    __builtin_add_overflow(total, size, &total) || total > MAX_UNPACKED)
			return false;
	}
	return true;
}

static bool ends_with_zero(Elf *elf, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = sf_elf_find_section(elf, name, &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	if (!data || !data->d_buf || data->d_size == 0)
		return true;
	return ((const char *)data->d_buf)[data->d_size - 1] == 0;
}

bool sf_dwarf_strings_end(Dwarf *dwarf)
{
	static const char *const names[] = {
		".debug_str", ".zdebug_str", ".debug_line_str", ".zdebug_line_str", ".debug_str.dwo",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!ends_with_zero(dwarf_getelf(dwarf), names[i]))
			return false;
	}
	return true;
}

bool sf_dwarf_join_path(const char *folder, const char *name, char ret[SF_JOINED_MAX])
{
	if (name[0] == '/')
		folder = "";
	return snprintf(ret, SF_JOINED_MAX, "%s%s%s", folder, *folder ? "/" : "", name) <
	       SF_JOINED_MAX;
}
