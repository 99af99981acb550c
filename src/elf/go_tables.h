/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that Go's linker writes for Go's own runtime: which functions there are, their names, and where each is
 * described (.gopclntab: runtime/symtab.go and cmd/link/internal/ld/pcln.go of Go 1.16 to 1.20 and later). Programs that were
 * linked with -s have them, too. The file is hostile input.
 */
#ifndef SF_ELF_GO_TABLES_H
#define SF_ELF_GO_TABLES_H

#include "elf/file.h"

struct sf_go_form;

/* Offsets in the section, but for `text`: the address that entries count from. */
struct sf_go_tables {
	struct sf_section section;     /* the file's: valid as long as that is open */
	const struct sf_go_form *form;
	uint64_t n;                    /* functions */
	uint64_t functions, lists, names, text;
};

/* False, and size 0: the file is none by Go's linker, or has no such section. */
bool sf_go_section(struct sf_elf *elf, struct sf_section *ret);

/* False: they have a form that is not known, or are damaged. */
bool sf_go_tables_open(const struct sf_section *section, struct sf_go_tables *ret);

/* `size` bytes of the section as a number. 0: they are not in it. */
uint64_t sf_go_number(const struct sf_go_tables *tables, uint64_t at, size_t size);

/* The address of function i; of i = n, the end of all. In the order of addresses, but for damage. */
uint64_t sf_go_entry(const struct sf_go_tables *tables, uint64_t i);

/* NULL: it has none. */
const char *sf_go_name(const struct sf_go_tables *tables, uint64_t i);

/*
 * Where the offset of function i's list of distances between sp and its place at the entry stands, in four bytes. SF_GO_LINES bytes
 * behind it stands that of the list of lines.
 */
#define SF_GO_LINES 8
uint64_t sf_go_lists(const struct sf_go_tables *tables, uint64_t i);

#endif
