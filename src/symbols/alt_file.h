/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that debug data shares with others (.gnu_debugaltlink). libdw opens this file by its name as
 * soon as an entry refers to it, unless the Dwarf has one already. Each Dwarf is therefore given such a
 * file, and an empty one if there is no other. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ALT_FILE_H
#define SF_SYMBOLS_ALT_FILE_H

#include <elfutils/libdw.h>

#include "elf/file.h"

/* Opens what the link of `dwarf` (from `file`) names, if the build id is the link's; else false. */
bool sf_alt_find(Dwarf *dwarf, const struct sf_elf *file, struct sf_elf *ret);

/*
 * Debug data with nothing in it, for dwarf_setalt: what refers to it is not found. Elf and Dwarf are
 * the caller's to end, the Dwarf first; false when memory ran out.
 */
bool sf_alt_none(struct sf_elf *ret, Dwarf **dwarf_ret);

#endif
