/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a file's DWARF must pass before libdw may read it. For src/symbols only. */
#ifndef SF_SYMBOLS_DWARF_FILE_H
#define SF_SYMBOLS_DWARF_FILE_H

#include <elfutils/libdw.h>

#include "elf/file.h"

/* Whether unpacking the compressed sections takes an acceptable amount of memory. */
bool sf_dwarf_is_sane(Elf *elf);

/*
 * Whether the string sections end with a zero. libdw hands out any place in them as a string, so
 * data of which this is not true must not be used. Only after dwarf_begin, which unpacks them.
 */
bool sf_dwarf_strings_end(Dwarf *dwarf);

#endif
