/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the other half of a unit of split DWARF safely. Only libdw can join the two halves of a unit, and
 * libdw opens the other half itself, by names from the debug data: DW_AT_dwo_name if that is absolute, else
 * below DW_AT_comp_dir. (libdw derives other places, beside the file and in a .dwp file, from the file's
 * descriptor. It has none here: the file is mapped.)
 *
 * A check of such a name may not hold any more when libdw uses the name. Therefore no such name reaches
 * libdw: the file is found and opened here. During the call its descriptor's name (/dev/fd/N) replaces the
 * two strings, in our private copy of the file. The descriptor's name leads to the open file, even if
 * the file's own name changes.
 *
 * If the strings have no room for the descriptor's name, the other half is not read. This is the case for a
 * folder of less than four letters with a file of less than eight.
 */
#include "symbols/sources.h"

#include <dwarf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "elf/debug_file.h"
#include "symbols/dwarf_symbols.h"

/* A split file is one unit's: libdw reads it whole. The largest that were seen have some megabytes. */
#define MAX_SIZE ((off_t)64 << 20)

/* Without following references to other entries, as libdw looks for it. */
static char *string_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr(die, name, &attribute))
		return NULL;
	return (char *)(uintptr_t)dwarf_formstring(&attribute);
}

static char *split_name(Dwarf_Die *skeleton)
{
	char *name = string_of(skeleton, DW_AT_dwo_name);

	return name ? name : string_of(skeleton, DW_AT_GNU_dwo_name);
}

/* Whether libdw may read this file. */
static bool is_sane(int fd)
{
	struct stat status;
	Elf *elf;
	bool sane;

	if (fstat(fd, &status) != 0 || status.st_size > MAX_SIZE)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	sane = elf && elf_kind(elf) == ELF_K_ELF && sf_dwarf_is_sane(elf);
	elf_end(elf);
	return sane;
}

static int open_in(const char *folder, const char *name)
{
	char path[SF_JOINED_MAX];
	int fd = -1;

	if (!sf_dwarf_join_path(folder, name, path) || path[0] != '/' ||
	    !sf_foreign_open(AT_FDCWD, path, &fd, NULL))
		return -1;
	if (!is_sane(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Beside the file that has the skeleton, else where the compiler put it. */
static int open_split(const struct sf_elf *file, const char *comp_dir, const char *name)
{
	char folder[PATH_MAX] = "";
	int fd;

	sf_elf_folder(file, folder);
	fd = open_in(folder, name);
	return fd >= 0 || !comp_dir ? fd : open_in(comp_dir, name);
}

/* A string in the debug data, whose first bytes are replaced for the time of a call. */
struct text {
	char *at;               /* NULL: there is none */
	char was[32];
	size_t n;               /* bytes that are replaced; 0: none */
};

/* The two strings of a skeleton. */
struct names {
	struct text folder, name;
};

/* Whether the string has room for `by`; then the bytes that it would replace are saved. */
static bool prepare(struct text *text, const char *by)
{
	const size_t size = strlen(by) + 1;

	if (!text->at || size > sizeof(text->was) || strlen(text->at) + 1 < size ||
	    !sf_dwarf_make_writable(text->at, size))
		return false;
	memcpy(text->was, text->at, size);
	text->n = size;
	return true;
}

static void restore(struct names *names)
{
	if (names->folder.n)
		memcpy(names->folder.at, names->folder.was, names->folder.n);
	memcpy(names->name.at, names->name.was, names->name.n);
	names->folder.n = names->name.n = 0;
}

/* Makes the strings say `folder` (NULL: it stays) and `name`; false where they overlap or are too short. */
static bool write_both(struct names *names, const char *folder, const char *name)
{
	if ((folder && !prepare(&names->folder, folder)) || !prepare(&names->name, name)) {
		names->folder.n = names->name.n = 0;
		return false;
	}
	if (folder)
		strcpy(names->folder.at, folder);
	strcpy(names->name.at, name);
	if (strcmp(names->name.at, name) == 0 && (!folder || strcmp(names->folder.at, folder) == 0))
		return true;
	restore(names);
	return false;
}

static bool is_file(const char *path, int fd)
{
	struct stat there, wanted;

	return stat(path, &there) == 0 && fstat(fd, &wanted) == 0 &&
	       there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino;
}

/* The strings say the descriptor's name, if there is a way to cut it in two that fits into them. */
static bool write_name(struct names *names, int fd)
{
	static const char *const folders[] = { NULL, "/", "/dev", "/dev/fd" };
	char path[32];

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	for (size_t i = 0; is_file(path, fd) && i < sizeof(folders) / sizeof(*folders); i++) {
		const char *name = folders[i] ? path + strlen(folders[i]) : path;

		if (write_both(names, folders[i], folders[i] && *name == '/' ? name + 1 : name))
			return true;
	}
	return false;
}

/* libdw opens the file here, and nowhere else. */
static bool join_halves(Dwarf_Die *skeleton, Dwarf *no_alt, Dwarf_Die *ret)
{
	Dwarf *split;
	uint8_t type;

	if (dwarf_cu_info(skeleton->cu, NULL, &type, NULL, ret, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton || !ret->addr)
		return false;
	split = dwarf_cu_getdwarf(ret->cu);
	dwarf_setalt(split, no_alt);
	return sf_die_is_whole(ret) && sf_dwarf_strings_end(split);
}

bool sf_split_find(Dwarf_Die *skeleton, const struct sf_elf *file, Dwarf *no_alt, Dwarf_Die *ret)
{
	struct names names = { .folder.at = string_of(skeleton, DW_AT_comp_dir),
			       .name.at = split_name(skeleton) };
	SF_CLEANUP(close) int fd = -1;
	uint8_t type;
	bool found;

	if (!names.name.at || !file->map ||
	    dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return false;
	fd = open_split(file, names.folder.at, names.name.at);
	if (fd < 0 || !write_name(&names, fd))
		return false;
	found = join_halves(skeleton, no_alt, ret);
	restore(&names);
	return found;
}
