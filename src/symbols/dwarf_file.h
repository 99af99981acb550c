/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be true of a file's DWARF before libdw may look at it, and the files that libdw would
 * open by itself. For src/symbols only.
 */
#ifndef SF_SYMBOLS_DWARF_FILE_H
#define SF_SYMBOLS_DWARF_FILE_H

#include <elfutils/libdw.h>

#include "elf/file.h"

/*
 * The file that `dwarf` (from `file`) shares data with through .gnu_debugaltlink. Returns false
 * only when libdw must not be asked about it: it would open something that is not a file.
 */
bool sf_dwarf_find_alt(Dwarf *dwarf, const struct sf_elf *file, struct sf_elf *ret);

/* Whether libdw may look for the other half of a split unit: see above. */
bool sf_dwarf_may_split(Dwarf_Die *skeleton, const struct sf_elf *file);

/* Whether unpacking the compressed sections takes memory in proportion to the file. */
bool sf_dwarf_is_sane(const struct sf_elf *file);

/*
 * Whether the string sections end with a zero. libdw hands out any place in them as a string, so
 * data of which this is not true must not be used. Only after dwarf_begin, which unpacks them.
 */
bool sf_dwarf_strings_end(Dwarf *dwarf);

#endif
