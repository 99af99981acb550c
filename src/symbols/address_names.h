/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses without DWARF, and the texts of all locations. A name comes from a symbol, or from a
 * stub's target, or is made of the function's start address. For src/symbols only.
 *
 * Each text is kept once, and each linkage name is made readable once. Texts live as long as the
 * sf_location_names. A function that is named gets both its names, `function` and `linkage`. Functions that
 * return false, or NULL, do so when memory ran out.
 */
#ifndef SF_SYMBOLS_ADDRESS_NAMES_H
#define SF_SYMBOLS_ADDRESS_NAMES_H

#include "base/intern.h"
#include "symbols/code_starts.h"
#include "symbols/ilc_methods.h"
#include "symbols/sources.h"
#include "symbols/symbols.h"

struct sf_location_names {
	const char *base; /* the last part of the image's path, or "" */
	bool by_ilc;      /* linkage names are of ILC's code (ilc_names.h) */
	struct sf_intern *strings;
	SF_VEC(const char *) readable; /* by the number of a linkage name; NULL: not known yet */
};

/* `path`: of the image, or NULL. Deinit in any case. */
bool sf_location_names_init(struct sf_location_names *names, const char *path);
void sf_location_names_deinit(struct sf_location_names *names); /* of zeroed ones too */

/* A text as it is, cut where it is longer than any honest name. */
const char *sf_location_names_add(struct sf_location_names *names, const char *text);

/* As the linker sees it. */
bool sf_location_by_linkage(struct sf_location_names *names, const char *linkage,
			    struct sf_location *ret);

/* Zero it to begin; each part is read when an address first needs it. */
struct sf_address_names {
	struct sf_elf packed;                /* .gnu_debugdata, or not open */
	struct sf_ranges symbols, stubs, functions;
	struct sf_code_starts starts;
	struct sf_ilc_methods methods;       /* of code by ILC */
	const uint64_t *asked;               /* all addresses that will be looked up */
	size_t n_asked;
	bool has_symbols, has_functions, has_methods;
	bool stripped;                        /* symbols are those that other modules may use, at most */
	bool by_wanted;                       /* the last name depends on these, too; cleared by the caller */
};

/*
 * Names the function at `address`; *ret stays as it is where nothing is known. The files of `sources` stay
 * open as long as the names are used.
 */
bool sf_address_names_find(struct sf_address_names *names, struct sf_sources *sources,
			   struct sf_location_names *texts, uint64_t address,
			   struct sf_location *ret);

void sf_address_names_deinit(struct sf_address_names *names);

#endif
