/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, inlined calls and lines from DWARF, for many addresses at once. For src/symbols only.
 *
 * Work is grouped by unit, each unit's tree is walked once (scopes.c), and names are
 * put together from the entries found (die_name.c). All three count what they visit: hostile data
 * may refer to itself in circles, and then the budget ends the walk.
 */
#ifndef SF_SYMBOLS_DWARF_SYMBOLS_H
#define SF_SYMBOLS_DWARF_SYMBOLS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/file.h"

/* An address to resolve. Arrays of queries are sorted by address. */
struct sf_query {
	uint64_t address;
	size_t index;   /* the caller's */
	Dwarf_Off unit; /* where the unit's entry is, or SF_NO_UNIT */
};

#define SF_NO_UNIT UINT64_MAX

/* The number of entries, address ranges, queries in them, and instructions of line tables that may still be visited. */
struct sf_budget {
	uint64_t left;
};

static inline bool sf_budget_spend(struct sf_budget *budget)
{
	return budget->left && budget->left--;
}

/*
 * Whether there is code. Functions that the linker dropped keep their sizes, and begin at 0 or 1, where the file's header is,
 * or nothing.
 */
bool sf_dwarf_is_code(const struct sf_elf *image, uint64_t address);

/*
 * Moves the lines of functions that the linker dropped to where no code of `image` is: libdw sorts the lines of a unit by their
 * addresses, and they would be among those of other functions. `unit` has the line table, of a file that is mapped
 * (sf_elf_map). Before libdw reads the table. Units may share one: each of its instructions is paid for.
 */
void sf_lines_move_dropped(Dwarf_Die *unit, const struct sf_elf *image, struct sf_budget *budget);

/* Sets `unit` of each query that a unit with code says is its own. */
void sf_units_assign(Dwarf *dwarf, const struct sf_elf *image, struct sf_query *queries, size_t n,
		     struct sf_budget *budget);

/* A function or an inlined call. */
struct sf_scope {
	Dwarf_Die die;
	uint32_t parent; /* number of the scope that it was inlined into, 0: none */
	bool inlined;
};

struct sf_scopes {
	SF_VEC(struct sf_scope) items; /* number 0 is none */
	SF_VEC(uint32_t) of_query;     /* the innermost scope of each query, or 0 */
};

/* The scopes of queries of one unit of `image`. False: out of memory. */
bool sf_scopes_find(Dwarf_Die *unit, const struct sf_elf *image, const struct sf_query *queries, size_t n,
		    struct sf_budget *budget, struct sf_scopes *ret);
void sf_scopes_deinit(struct sf_scopes *scopes);

/*
 * Whether all attributes are inside of the data. libdw hands out strings that stand in the entry
 * itself without looking for their end, so an entry's strings are read only after this check.
 */
bool sf_die_is_whole(Dwarf_Die *die);

/* A string of the entry or of what it is an instance of, or NULL. */
const char *sf_die_string(Dwarf_Die *die, unsigned attribute);

/* The linkage name of the function, or NULL. */
const char *sf_die_linkage_name(Dwarf_Die *die);

/*
 * The name in the source, with the namespaces and classes around it where the language has them,
 * from malloc; NULL without a name.
 */
char *sf_die_qualified_name(Dwarf_Die *die, struct sf_budget *budget);

/*
 * The types of the parameters of a method that ILC has compiled (ilc_names.h), in parentheses, from malloc. NULL: no memory.
 */
char *sf_ilc_parameters(Dwarf_Die *function, const char *program, struct sf_budget *budget);

#endif
