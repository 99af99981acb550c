/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "elf/debug_file.h"
#include "symbols/dwarf_symbols.h"

/* Whether asking for this path cannot block: nothing is there, or a regular file. */
static bool is_harmless(const char *path)
{
	struct stat status;

	return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

static void join(const char *folder, const char *name, char ret[2 * PATH_MAX])
{
	if (name[0] == '/')
		folder = "";
	snprintf(ret, 2 * PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", name);
}

static bool has_build_id(const struct sf_elf *elf, const void *id, size_t size)
{
	return elf->build_id_size == size && memcmp(elf->build_id, id, size) == 0;
}

bool sf_dwarf_find_alt(Dwarf *dwarf, const struct sf_elf *file, struct sf_elf *ret)
{
	char folder[PATH_MAX], linked[2 * PATH_MAX], by_id[PATH_MAX];
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (size <= 0)
		return true;
	if (!sf_elf_folder(file, folder))
		folder[0] = 0;
	join(folder, name, linked);
	if (!sf_debug_file_path(SF_DEBUG_ROOT, id, (size_t)size, by_id))
		by_id[0] = 0;
	if ((by_id[0] && sf_elf_open_path(by_id, ret, NULL)) ||
	    sf_elf_open_path(linked, ret, NULL)) {
		if (has_build_id(ret, id, (size_t)size))
			return true;
		sf_elf_close(ret);
	}
	return is_harmless(linked);
}

bool sf_dwarf_may_split(Dwarf_Die *skeleton, const struct sf_elf *file)
{
	const char *name = sf_die_string(skeleton, DW_AT_dwo_name);
	const char *comp_dir = sf_die_string(skeleton, DW_AT_comp_dir);
	char folder[PATH_MAX], path[2 * PATH_MAX];

	if (!name)
		name = sf_die_string(skeleton, DW_AT_GNU_dwo_name);
	if (!name)
		return true;
	if (!sf_elf_folder(file, folder))
		folder[0] = 0;
	join(folder, name, path);
	if (!is_harmless(path))
		return false;
	join(comp_dir ? comp_dir : "", name, path);
	return is_harmless(path);
}

bool sf_dwarf_is_sane(const struct sf_elf *file)
{
	/* zlib makes debug data four times smaller, ten times at best (dwz'd and repetitive). */
	uint64_t limit = (64u << 20) + 32 * file->size, total = 0;

	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		GElf_Shdr header;
		GElf_Chdr compressed;
		ssize_t old_style;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		if (header.sh_flags & SHF_COMPRESSED) {
			if (!gelf_getchdr(section, &compressed) ||
			    __builtin_add_overflow(total, compressed.ch_size, &total))
				return false;
		} else if ((old_style = dwelf_scn_gnu_compressed_size(section)) > 0) {
			total += (uint64_t)old_style;
		}
		if (total > limit)
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
