/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses without DWARF. The name comes from a symbol, or from a stub's target, or is made of
 * the function's start address. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ADDRESS_NAMES_H
#define SF_SYMBOLS_ADDRESS_NAMES_H

#include "symbols/elf_symbols.h"
#include "symbols/function_ranges.h"
#include "symbols/plt_names.h"

/* Zero it to begin; each part is read when an address first needs it. */
struct sf_address_names {
	struct sf_elf packed;                /* .gnu_debugdata, or not open */
	struct sf_elf_symbols symbols;
	struct sf_plt_names plt;
	struct sf_function_ranges functions;
	bool has_symbols, has_functions;
};

struct sf_address_name {
	const char *symbol; /* in an ELF file; NULL: only `start` is known, if anything */
	bool is_plt;        /* the stub that calls `symbol` */
	uint64_t start;     /* of the function, when there is no symbol; 0: unknown, too */
};

/*
 * The name at `address` of `image`, which may have a separate debug file (else `debug` is not
 * open). The files stay open as long as the names are used. False when memory ran out.
 */
bool sf_address_names_find(struct sf_address_names *names, struct sf_elf *image,
			   const struct sf_elf *debug, uint64_t address,
			   struct sf_address_name *ret);

void sf_address_names_deinit(struct sf_address_names *names);

#endif
