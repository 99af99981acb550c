/* SPDX-License-Identifier: Apache-2.0 */
/* The other half of a split unit, in a file of its own (.dwo). For src/symbols only. */
#ifndef SF_SYMBOLS_SPLIT_FILE_H
#define SF_SYMBOLS_SPLIT_FILE_H

#include <elfutils/libdw.h>

#include "elf/file.h"

/*
 * The entry of the split unit that belongs to `skeleton`, a unit's entry that is whole
 * (sf_die_is_whole), in the debug data of `file`, which is mapped (sf_elf_map). `no_alt` becomes
 * what the split file shares with others. False if there is none, or none that is safe to read.
 */
bool sf_split_find(Dwarf_Die *skeleton, const struct sf_elf *file, Dwarf *no_alt, Dwarf_Die *ret);

#endif
