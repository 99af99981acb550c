/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the DWARF unit of many addresses, and their functions and inlined calls in one walk over its tree.
 *
 * Each unit's own ranges are used, not .debug_aranges: clang does not write that section, and after
 * `ld -r` or LTO it lacks units. Reading the first entry of every unit is cheap: a thousandth of the data.
 *
 * Each query has the innermost scope that was found so far. An entry takes over the queries at its
 * addresses that are in its parent's scope, and is entered only if there are any. Most compilers put
 * functions directly below the unit or a namespace. Functions that are not found there are searched in a
 * second walk that enters every entry (Rust keeps functions in types, GNU C and Ada in other functions).
 */
#include <dwarf.h>
#include <string.h>

#include "base/search.h"
#include "symbols/dwarf_symbols.h"

/* A tree of 1,000 levels of inlined calls is no compiler's; gcc and clang stay below 100. */
#define MAX_DEPTH 256

/* The number of the first of these queries that is not below `address`. */
static size_t queries_from(const struct sf_query *queries, size_t n, uint64_t address)
{
	return sf_count_before(n, i, queries[i].address < address);
}

bool sf_dwarf_is_code(const struct sf_elf *image, uint64_t address)
{
	GElf_Phdr code;

	return sf_elf_find_loaded(image, address, PF_X, &code) &&
	       address - code.p_vaddr + code.p_offset >= sizeof(Elf64_Ehdr);
}

static void assign_unit(struct sf_query *queries, size_t n, Dwarf_Die *die,
			const struct sf_elf *image, struct sf_budget *budget)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while (sf_budget_spend(budget) &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (start >= end || !sf_dwarf_is_code(image, start))
			continue;
		for (size_t i = queries_from(queries, n, start);
		     i < n && queries[i].address < end && sf_budget_spend(budget); i++) {
			if (queries[i].unit == SF_NO_UNIT)
				queries[i].unit = dwarf_dieoffset(die);
		}
	}
}

/* Units that do not say where their code is may be in .debug_aranges all the same. */
static void assign_by_aranges(struct sf_query *queries, size_t n, Dwarf *dwarf)
{
	Dwarf_Aranges *aranges;
	size_t n_aranges;

	if (dwarf_getaranges(dwarf, &aranges, &n_aranges) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Arange *arange = queries[i].unit != SF_NO_UNIT ? NULL
				       : dwarf_getarange_addr(aranges, queries[i].address);
		Dwarf_Off offset;

		if (arange && dwarf_getarangeinfo(arange, NULL, NULL, &offset) == 0)
			queries[i].unit = offset;
	}
}

void sf_units_assign(Dwarf *dwarf, const struct sf_elf *image, struct sf_query *queries, size_t n,
		     struct sf_budget *budget)
{
	Dwarf_Off offset = 0, next;
	size_t header_size;

	while (sf_budget_spend(budget) &&
	       dwarf_nextcu(dwarf, offset, &next, &header_size, NULL, NULL, NULL) == 0) {
		Dwarf_Die die;

		if (next <= offset)
			break;
		if (dwarf_offdie(dwarf, offset + header_size, &die) &&
		    dwarf_tag(&die) != DW_TAG_type_unit && dwarf_tag(&die) != DW_TAG_partial_unit)
			assign_unit(queries, n, &die, image, budget);
		offset = next;
	}
	assign_by_aranges(queries, n, dwarf);
}

struct walk {
	const struct sf_elf *image;
	const struct sf_query *queries;
	size_t n, n_without; /* queries, and those without a scope */
	struct sf_scopes *scopes;
	struct sf_budget *budget;
	bool everywhere;
	bool failed;
};

static void walk_children(struct walk *walk, Dwarf_Die *parent, uint32_t scope, unsigned depth);

/* Moves the queries in a range from `scope` to `inner`. False: there are none. */
static bool take_range(struct walk *walk, uint64_t start, uint64_t end, uint32_t scope, uint32_t inner)
{
	uint32_t *scopes = walk->scopes->of_query.items;
	size_t i = queries_from(walk->queries, walk->n, start);
	bool any = false;

	if (i == walk->n || walk->queries[i].address >= end || !sf_dwarf_is_code(walk->image, start))
		return false;
	for (; i < walk->n && walk->queries[i].address < end && sf_budget_spend(walk->budget); i++) {
		if (scopes[i] != scope)
			continue;
		walk->n_without -= !scope && inner;
		scopes[i] = inner;
		any = true;
	}
	return any;
}

/* The same of all ranges of an entry. */
static bool take_queries(struct walk *walk, Dwarf_Die *die, uint32_t scope, uint32_t inner)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	bool any = false;

	while (sf_budget_spend(walk->budget) &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
		any |= take_range(walk, start, end, scope, inner);
	return any;
}

/* An entry with addresses: a function, an inlined call or a block. */
static void visit_code(struct walk *walk, Dwarf_Die *die, uint32_t scope, unsigned depth)
{
	struct sf_scopes *scopes = walk->scopes;
	int tag = dwarf_tag(die);
	bool inlined = tag == DW_TAG_inlined_subroutine;
	bool is_scope = inlined || tag == DW_TAG_subprogram;
	uint32_t inner = is_scope ? (uint32_t)scopes->items.n : scope;

	if (!take_queries(walk, die, scope, inner))
		return;
	walk->failed = is_scope && !sf_vec_push(&scopes->items, (struct sf_scope){
		.die = *die, .parent = inlined ? scope : 0, .inlined = inlined });
	walk_children(walk, die, inner, depth + 1);
}

static bool has_addresses(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

static void visit(struct walk *walk, Dwarf_Die *die, uint32_t scope, unsigned depth)
{
	bool enter = walk->everywhere && !scope && dwarf_haschildren(die) == 1;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		if (has_addresses(die))
			visit_code(walk, die, scope, depth);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
		enter = true;
		break;
	}
	if (enter)
		walk_children(walk, die, 0, depth + 1);
}

/* `scope` is the one that the parent is in; 0: none. */
static void walk_children(struct walk *walk, Dwarf_Die *parent, uint32_t scope, unsigned depth)
{
	Dwarf_Die die;

	if (depth > MAX_DEPTH || dwarf_child(parent, &die) != 0)
		return;
	while ((scope || walk->n_without) && !walk->failed && sf_budget_spend(walk->budget)) {
		Dwarf_Die next;

		visit(walk, &die, scope, depth);
		/* Siblings follow: one that does not would make a circle. */
		if (dwarf_siblingof(&die, &next) != 0 || next.addr <= die.addr)
			return;
		die = next;
	}
}

bool sf_scopes_find(Dwarf_Die *unit, const struct sf_elf *image, const struct sf_query *queries, size_t n,
		    struct sf_budget *budget, struct sf_scopes *ret)
{
	struct walk walk = { .image = image, .queries = queries, .n = n, .n_without = n, .scopes = ret,
			     .budget = budget };

	ret->items.n = ret->of_query.n = 0;
	if (!sf_vec_push(&ret->items, (struct sf_scope){ 0 }) || !sf_vec_reserve(&ret->of_query, n))
		return false;
	memset(ret->of_query.items, 0, n * sizeof(uint32_t));
	walk_children(&walk, unit, 0, 0);
	walk.everywhere = true;
	walk_children(&walk, unit, 0, 0);
	return !walk.failed;
}

void sf_scopes_deinit(struct sf_scopes *scopes)
{
	sf_vec_deinit(&scopes->items);
	sf_vec_deinit(&scopes->of_query);
}
