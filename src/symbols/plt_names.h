/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs through which x86-64 code calls other modules: each is named by the relocation of the
 * slot that it jumps through. For src/symbols only.
 */
#ifndef SF_SYMBOLS_PLT_NAMES_H
#define SF_SYMBOLS_PLT_NAMES_H

#include "base/vec.h"
#include "elf/file.h"

struct sf_plt_entry {
	uint64_t start, end;
	const char *name; /* of what is called, in the ELF file */
};

struct sf_plt_names {
	SF_VEC(struct sf_plt_entry) entries; /* sorted by start */
};

/* Reads the stubs of a file into *ret, which is zeroed. False when memory ran out. */
bool sf_plt_names_read(struct sf_elf *elf, struct sf_plt_names *ret);

/* The name of what the stub at `address` calls, or NULL. */
const char *sf_plt_names_find(const struct sf_plt_names *names, uint64_t address);

void sf_plt_names_deinit(struct sf_plt_names *names);

#endif
