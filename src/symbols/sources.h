/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with symbols and debug data for an image: the image, its separate debug file, and the file
 * that the debug file shares with others (.gnu_debugaltlink). The DWARF of one of them is opened if it is
 * safe to read. For src/symbols only.
 */
#ifndef SF_SYMBOLS_SOURCES_H
#define SF_SYMBOLS_SOURCES_H

#include <elfutils/libdw.h>
#include <limits.h>

#include "elf/file.h"

struct sf_sources {
	struct sf_elf image, debug, alt; /* debug, alt: not open where there is none */
	Dwarf *dwarf;                    /* of the image or of its debug file, or NULL */
	Dwarf *alt_dwarf;                /* what `dwarf` shares with others, or NULL */
	Elf *no_alt;                     /* an empty file, for those that share nothing, */
	Dwarf *no_alt_dwarf;             /* not NULL where `dwarf` is not */
};

/*
 * Opens what there is for the file behind `fd`, of which a copy is kept. `path`: see
 * sf_symbols_open. `dwarf`: also what has debug data. False when the image itself cannot be read: then nothing is left open.
 */
bool sf_sources_open(int fd, const char *path, bool dwarf, struct sf_sources *ret,
		     struct sf_error *err);
void sf_sources_close(struct sf_sources *sources); /* of zeroed ones too */

/* The file that `dwarf` is of. */
const struct sf_elf *sf_sources_dwarf_file(const struct sf_sources *sources);

/* Whether unpacking the compressed sections takes an acceptable amount of memory. */
bool sf_dwarf_is_sane(Elf *elf);

/*
 * Whether the string sections end with a zero. libdw hands out any place in them as a string, so
 * data of which this is not true must not be used. Only after dwarf_begin, which unpacks them.
 */
bool sf_dwarf_strings_end(Dwarf *dwarf);

/* `name`, below `folder` ("": there is none) unless it is absolute; false when it is too long. */
#define SF_JOINED_MAX (2 * PATH_MAX)
bool sf_dwarf_join_path(const char *folder, const char *name, char ret[SF_JOINED_MAX]);

/*
 * The entry of the split unit that belongs to `skeleton`, a unit's entry that is whole
 * (sf_die_is_whole), in the debug data of `file`, which is mapped (sf_elf_map). `no_alt` becomes
 * what the split file (.dwo) shares with others. False if there is none, or none that is safe to read.
 */
bool sf_split_find(Dwarf_Die *skeleton, const struct sf_elf *file, Dwarf *no_alt, Dwarf_Die *ret);

#endif
