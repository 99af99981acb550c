/* SPDX-License-Identifier: Apache-2.0 */
/* A file with DWARF: what it must pass before libdw may read it, and files that it refers to. For src/symbols only. */
#ifndef SF_SYMBOLS_DWARF_FILE_H
#define SF_SYMBOLS_DWARF_FILE_H

#include <elfutils/libdw.h>
#include <limits.h>

#include "elf/file.h"

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
