/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding debug data outside of the image, on this machine only: no debuginfod. libdwfl could do
 * most of this, but wants a path where we may have a descriptor only (a deleted file, another
 * mount namespace, a memfd), and asks the network when DEBUGINFOD_URLS is set.
 */
#include "symbols/debug_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/dwarf_symbols.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define MAX_BUILD_ID 64

/* The path of a build id under DEBUG_ROOT; false for an id that cannot have one. */
static bool build_id_path(const unsigned char *id, ssize_t size, char ret[256])
{
	int used;

	if (size < 3 || size > MAX_BUILD_ID)
		return false;
	used = snprintf(ret, 256, DEBUG_ROOT "/.build-id/%02x/", id[0]);
	for (ssize_t i = 1; i < size; i++)
		used += snprintf(ret + used, 256 - (size_t)used, "%02x", id[i]);
	snprintf(ret + used, 256 - (size_t)used, ".debug");
	return true;
}

static bool find_by_build_id(Elf *main, struct sf_elf_file *ret)
{
	char path[256];
	const void *id;
	ssize_t size = dwelf_elf_gnu_build_id(main, &id);

	if (size <= 0 || !build_id_path(id, size, path) || !sf_elf_file_open(path, ret))
		return false;
	if (sf_elf_same_build(main, ret->elf) != SF_SAME_NO)
		return true;
	sf_elf_file_close(ret);
	return false;
}

/* The checksum that a debug link carries: the CRC-32 of all bytes. */
static bool crc_matches(const struct sf_elf_file *file, uint32_t wanted)
{
	SF_CLEANUP(free) unsigned char *buffer = malloc(1 << 18);
	uint32_t crc = 0;
	off_t offset = 0;
	ssize_t n;

	if (!buffer)
		return false;
	while ((n = pread(file->fd, buffer, 1 << 18, offset)) > 0) {
		crc = lzma_crc32(buffer, (size_t)n, crc);
		offset += n;
	}
	return n == 0 && crc == wanted;
}

static bool belongs(Elf *main, const struct sf_elf_file *debug, uint32_t crc)
{
	switch (sf_elf_same_build(main, debug->elf)) {
	case SF_SAME_NO:
		return false;
	case SF_SAME_YES:
		return true;
	case SF_SAME_UNKNOWN:
		return crc_matches(debug, crc);
	}
	return false;
}

/* The same places, in the same order, as gdb. */
static const char *const link_formats[] = {
	"%.*s/%s", "%.*s/.debug/%s", DEBUG_ROOT "%.*s/%s"
};

static bool find_by_link(Elf *main, const char *path, struct sf_elf_file *ret)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(main, &crc);
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? path : ".";
	int folder_size = slash ? (int)(slash - path) : 1;

	if (!name || strchr(name, '/'))
		return false;
	for (size_t i = 0; i < sizeof(link_formats) / sizeof(*link_formats); i++) {
		char candidate[PATH_MAX];
		int n = snprintf(candidate, sizeof(candidate), link_formats[i], folder_size,
				 folder, name);

		if (n >= (int)sizeof(candidate) || !sf_elf_file_open(candidate, ret))
			continue;
		if (belongs(main, ret, crc))
			return true;
		sf_elf_file_close(ret);
	}
	return false;
}

bool sf_debug_file_find(Elf *main, const char *path, struct sf_elf_file *ret)
{
	return find_by_build_id(main, ret) || (path && find_by_link(main, path, ret));
}

/* Whether asking for this path cannot block: nothing is there, or a regular file. */
static bool is_harmless(const char *path)
{
	struct stat status;

	return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

/* The folder that `file` is in, without the final slash; "" when it has no path any more. */
static void folder_of(const struct sf_elf_file *file, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n;
	char *slash;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	n = readlink(link, ret, PATH_MAX - 1);
	ret[n > 0 ? n : 0] = 0;
	slash = strrchr(ret, '/');
	*(slash ? slash : ret) = 0;
}

static void join(const char *folder, const char *name, char ret[2 * PATH_MAX])
{
	if (name[0] == '/')
		folder = "";
	snprintf(ret, 2 * PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", name);
}

static bool has_build_id(Elf *elf, const void *id, size_t size)
{
	const void *found;

	return dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)size &&
	       memcmp(found, id, size) == 0;
}

bool sf_debug_file_find_alt(Dwarf *dwarf, const struct sf_elf_file *file, struct sf_elf_file *ret)
{
	char folder[PATH_MAX], linked[2 * PATH_MAX], by_id[256];
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (size <= 0)
		return true;
	folder_of(file, folder);
	join(folder, name, linked);
	if (!build_id_path(id, size, by_id))
		by_id[0] = 0;
	if ((by_id[0] && sf_elf_file_open(by_id, ret)) || sf_elf_file_open(linked, ret)) {
		if (has_build_id(ret->elf, id, (size_t)size))
			return true;
		sf_elf_file_close(ret);
	}
	return is_harmless(linked);
}

bool sf_debug_file_may_split(Dwarf_Die *skeleton, const struct sf_elf_file *file)
{
	const char *name = sf_die_string(skeleton, DW_AT_dwo_name);
	const char *comp_dir = sf_die_string(skeleton, DW_AT_comp_dir);
	char folder[PATH_MAX], path[2 * PATH_MAX];

	if (!name)
		name = sf_die_string(skeleton, DW_AT_GNU_dwo_name);
	if (!name)
		return true;
	folder_of(file, folder);
	join(folder, name, path);
	if (!is_harmless(path))
		return false;
	join(comp_dir ? comp_dir : "", name, path);
	return is_harmless(path);
}

bool sf_debug_file_is_sane(const struct sf_elf_file *file)
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
	Elf_Scn *section = sf_elf_file_section(elf, name, &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	if (!data || !data->d_buf || data->d_size == 0)
		return true;
	return ((const char *)data->d_buf)[data->d_size - 1] == 0;
}

bool sf_debug_file_strings_end(Dwarf *dwarf)
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
