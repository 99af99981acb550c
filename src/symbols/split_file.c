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
#include "symbols/dwarf_file.h"

#include <dwarf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "elf/debug_file.h"
#include "symbols/dwarf_symbols.h"

/* A split file is one unit's: libdw reads it whole. The largest that were seen have some megabytes. */
#define MAX_SIZE ((off_t)64 << 20)

/* A string in the debug data, while another one stands in its place. */
struct place {
	char *text;     /* NULL: there is none */
	char was[64];   /* what has to be put back: `size` bytes */
	size_t size;
};

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

/* Makes the bytes writable: mapped ones are our own from here on, unpacked ones are from malloc. */
static bool make_writable(const char *text, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)text & ~(page - 1);

	return mprotect((void *)start, (uintptr_t)text + size - start, PROT_READ | PROT_WRITE) == 0;
}

static bool replace(struct place *place, char *text, const char *by, size_t by_size)
{
	if (by_size >= sizeof(place->was) || strlen(text) < by_size ||
	    !make_writable(text, by_size + 1))
		return false;
	place->text = text;
	place->size = by_size + 1;
	memcpy(place->was, text, place->size);
	memcpy(text, by, by_size);
	text[by_size] = 0;
	return true;
}

static void put_back(struct place *place)
{
	if (place->text)
		memcpy(place->text, place->was, place->size);
	place->text = NULL;
}

/* The two strings of a skeleton, with another name for the time of a call. */
struct names {
	char *folder, *name;        /* in the debug data; folder: NULL: none */
	struct place of_folder, of_name;
};

/* The folder was written first: the places are put back in the opposite order, as they may overlap. */
static void restore(struct names *names)
{
	put_back(&names->of_name);
	put_back(&names->of_folder);
}

/* Makes the two say `path`, cut in two at `slash`; at its start, if that is 0 and it is absolute. */
static bool write_cut(struct names *names, const char *path, size_t slash)
{
	const char *folder = slash ? path : "/", *name = path + slash + 1;
	size_t folder_size = slash ? slash : 1;

	if (names->folder && replace(&names->of_folder, names->folder, folder, folder_size) &&
	    replace(&names->of_name, names->name, name, strlen(name)) &&
	    strncmp(names->folder, folder, folder_size) == 0 && !names->folder[folder_size] &&
	    strcmp(names->name, name) == 0)
		return true;
	restore(names);
	return false;
}

static bool write_whole(struct names *names, const char *path)
{
	if (replace(&names->of_name, names->name, path, strlen(path)))
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

/* The strings say the descriptor's name, if there is a way to write it into them. */
static bool write_name(struct names *names, int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (!is_file(path, fd))
		return false;
	if (write_whole(names, path))
		return true;
	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		if (write_cut(names, path, (size_t)(slash - path)))
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
	struct names names = { .folder = string_of(skeleton, DW_AT_comp_dir),
			       .name = split_name(skeleton) };
	SF_CLEANUP(close) int fd = -1;
	uint8_t type;
	bool found;

	if (!names.name || !file->map ||
	    dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return false;
	fd = open_split(file, names.folder, names.name);
	if (fd < 0 || !write_name(&names, fd))
		return false;
	found = join_halves(skeleton, no_alt, ret);
	restore(&names);
	return found;
}
