/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses without DWARF. The name comes from a symbol, or from a stub's target, or is made of
 * the function's start address. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ADDRESS_NAMES_H
#define SF_SYMBOLS_ADDRESS_NAMES_H

#include "symbols/location_names.h"
#include "symbols/ranges.h"
#include "symbols/sources.h"

/* Zero it to begin; each part is read when an address first needs it. */
struct sf_address_names {
	struct sf_elf packed;                /* .gnu_debugdata, or not open */
	struct sf_ranges symbols, stubs, functions;
	bool has_symbols, has_functions;
};

/*
 * Names the function at `address`; *ret stays as it is where nothing is known. The files of `sources` stay
 * open as long as the names are used. False when memory ran out.
 */
bool sf_address_names_find(struct sf_address_names *names, struct sf_sources *sources,
			   struct sf_location_names *texts, uint64_t address,
			   struct sf_location *ret);

void sf_address_names_deinit(struct sf_address_names *names);

#endif
