/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses of an ELF file, with names, and what they are read from: symbols, stubs that call
 * other modules, and call frame information. For src/symbols only.
 *
 * Functions that return false do so when memory ran out.
 */
#ifndef SF_SYMBOLS_RANGES_H
#define SF_SYMBOLS_RANGES_H

#include "base/vec.h"
#include "elf/file.h"

struct sf_range {
	uint64_t start, end;
	const char *name;     /* in the ELF file, or NULL */
	unsigned char rank;   /* of symbols that start at one address the highest is meant */
};

/* In a rank: the symbol says where it ends. Else it ends with its section, at most. */
#define SF_RANK_SIZED 32

struct sf_ranges {
	struct sf_range *items;
	size_t n, capacity;
};

void sf_ranges_sort(struct sf_ranges *ranges); /* by start */

/* How many of `n` sorted ranges start at or before `address`. */
size_t sf_ranges_before(const struct sf_range *sorted, size_t n, uint64_t address);

/* The range that starts last at or before `address`, if `address` is in it; else NULL. */
const struct sf_range *sf_ranges_find(const struct sf_ranges *sorted, uint64_t address);

/* Adds all function symbols of one file, or, for one without section headers, those that the dynamic linker sees. */
bool sf_ranges_add_symbols(struct sf_ranges *ranges, const struct sf_elf *elf);
bool sf_ranges_add_dynamic(struct sf_ranges *ranges, const struct sf_elf *elf);

/* Adds the functions that the tables of Go's runtime name; none where it is no program by Go's linker. */
bool sf_ranges_add_go(struct sf_ranges *ranges, struct sf_elf *elf);

/* Makes sorted ranges of symbols that do not overlap. */
bool sf_ranges_flatten(struct sf_ranges *symbols);

/* Sorted: the stubs through which x86-64 code calls other modules, with the names of the functions that they call. */
bool sf_ranges_read_stubs(struct sf_elf *elf, struct sf_ranges *ret);

/*
 * Sorted: where functions begin and end by .eh_frame and .debug_frame. This is known of stripped code,
 * too. A function that the compiler split has a range per part.
 */
bool sf_ranges_read_functions(struct sf_elf *elf, struct sf_ranges *ret);

#endif
