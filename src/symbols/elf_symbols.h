/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function symbols of ELF files, made into a sorted list of ranges that do not overlap, so that a
 * look-up is one binary search. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ELF_SYMBOLS_H
#define SF_SYMBOLS_ELF_SYMBOLS_H

#include "base/vec.h"
#include "elf/file.h"

struct sf_elf_symbol {
	uint64_t start, end;    /* of one without a size: the end of its section */
	const char *name;       /* in the ELF file */
	unsigned char rank;     /* which of several at one place is meant: the highest */
};

struct sf_elf_symbols {
	SF_VEC(struct sf_elf_symbol) found;
	SF_VEC(struct sf_elf_symbol) ranges; /* after sf_elf_symbols_finish */
};

/* Adds all function symbols of one file. False when memory ran out. */
bool sf_elf_symbols_add(struct sf_elf_symbols *symbols, const struct sf_elf *elf);

/* For a file without section headers: adds those that the dynamic linker sees. */
bool sf_elf_symbols_add_dynamic(struct sf_elf_symbols *symbols, const struct sf_elf *elf);

/* Adds one symbol if it names code that ends at `limit` at most; for the two above. */
bool sf_elf_symbols_add_one(struct sf_elf_symbols *symbols, const GElf_Sym *symbol,
			    const char *name, uint64_t limit);

/* Makes the ranges of what was found. False when memory ran out. */
bool sf_elf_symbols_finish(struct sf_elf_symbols *symbols);

/* The symbol at this address, or NULL. */
const struct sf_elf_symbol *sf_elf_symbols_find(const struct sf_elf_symbols *symbols,
						uint64_t address);

/* Whether the symbol says how far it goes; else it only says where it starts. */
bool sf_elf_symbol_is_sized(const struct sf_elf_symbol *symbol);

void sf_elf_symbols_deinit(struct sf_elf_symbols *symbols);

#endif
