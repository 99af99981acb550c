/* SPDX-License-Identifier: Apache-2.0 */
/* Files with debug data that belong to an image. For src/symbols only. */
#ifndef SF_SYMBOLS_DEBUG_FILE_H
#define SF_SYMBOLS_DEBUG_FILE_H

#include <elfutils/libdw.h>

#include "symbols/elf_file.h"

/*
 * The separate debug file of `main`, by build id, then by debug link relative to `path` (where the
 * image is, or NULL). False when there is none that fits.
 */
bool sf_debug_file_find(Elf *main, const char *path, struct sf_elf_file *ret);

/* The symbols in main's .gnu_debugdata. False when there are none. */
bool sf_debug_file_unpack(Elf *main, struct sf_elf_file *ret);

/*
 * The file that `dwarf` (from `file`) shares data with through .gnu_debugaltlink. Returns false
 * only when libdw must not be asked about it: it would open something that is not a file.
 */
bool sf_debug_file_find_alt(Dwarf *dwarf, const struct sf_elf_file *file,
			    struct sf_elf_file *ret);

/* Whether libdw may look for the other half of a split unit: see above. */
bool sf_debug_file_may_split(Dwarf_Die *skeleton, const struct sf_elf_file *file);

/* Whether unpacking the compressed sections takes memory in proportion to the file. */
bool sf_debug_file_is_sane(const struct sf_elf_file *file);

/*
 * Whether the string sections end with a zero. libdw hands out any place in them as a string, so
 * data of which this is not true must not be used. Only after dwarf_begin, which unpacks them.
 */
bool sf_debug_file_strings_end(Dwarf *dwarf);

#endif
