/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions and inlined calls at many addresses of a unit, in one walk over its tree.
 *
 * The walk carries the queries whose addresses are inside of the current entry, and enters only entries
 * that have such queries. Most compilers put functions directly below the unit or a namespace. Functions
 * that are not found there are searched in a second walk that enters every entry (Rust keeps functions in
 * types, GNU C and Ada in other functions).
 *
 * A set of queries is a slice of one stack of numbers.
 */
#include <dwarf.h>
#include <string.h>

#include "symbols/dwarf_symbols.h"

/* A tree of 1,000 levels of inlined calls is no compiler's; gcc and clang stay below 100. */
#define MAX_DEPTH 256

struct walk {
	const struct sf_query *queries;
	struct sf_scopes *scopes;
	struct sf_budget *budget;
	SF_VEC(uint32_t) stack;
	SF_VEC(uint32_t) marks; /* the last entry that each query was found in */
	uint32_t n_entries;
	bool everywhere;
	bool failed;
};

/* stack[start .. start + n) */
struct slice {
	size_t start, n;
};

static void walk_children(struct walk *walk, Dwarf_Die *parent, struct slice *slice,
			  uint32_t scope, unsigned depth);

static size_t first_from(const struct walk *walk, struct slice slice, uint64_t address)
{
	size_t low = slice.start, high = slice.start + slice.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (walk->queries[walk->stack.items[middle]].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Pushes the queries of the slice that are in [start, end) and not marked yet. */
static void push_range(struct walk *walk, struct slice slice, uint64_t start, uint64_t end,
		       uint32_t mark)
{
	size_t stop = slice.start + slice.n;

	for (size_t i = first_from(walk, slice, start); i < stop; i++) {
		uint32_t query = walk->stack.items[i];

		if (walk->queries[query].address >= end)
			return;
		if (walk->marks.items[query] == mark)
			continue;
		walk->marks.items[query] = mark;
		if (!sf_vec_push(&walk->stack, query)) {
			walk->failed = true;
			return;
		}
	}
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The queries of the slice that the entry covers. They are in order, as in every slice. */
static struct slice push_inside(struct walk *walk, Dwarf_Die *die, struct slice slice)
{
	struct slice inside = { .start = walk->stack.n };
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	uint32_t mark = ++walk->n_entries;
	unsigned n_ranges = 0;

	while (sf_budget_spend(walk->budget) &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		push_range(walk, slice, start, end, mark);
		n_ranges++;
	}
	inside.n = walk->stack.n - inside.start;
	if (n_ranges > 1 && inside.n > 1)
		qsort(walk->stack.items + inside.start, inside.n, sizeof(uint32_t),
		      compare_numbers);
	return inside;
}

/* Takes queries that were found in an entry out of the slice around it. */
static void remove_found(struct walk *walk, struct slice *slice, struct slice found)
{
	uint32_t *items = walk->stack.items;
	size_t kept = slice->start, next = found.start;

	for (size_t i = slice->start; i < slice->start + slice->n; i++) {
		if (next < found.start + found.n && items[i] == items[next])
			next++;
		else
			items[kept++] = items[i];
	}
	slice->n = kept - slice->start;
}

/* Takes queries out that have got a scope. */
static void remove_resolved(struct walk *walk, struct slice *slice)
{
	uint32_t *items = walk->stack.items;
	size_t kept = slice->start;

	for (size_t i = slice->start; i < slice->start + slice->n; i++) {
		if (!walk->scopes->of_query.items[items[i]])
			items[kept++] = items[i];
	}
	slice->n = kept - slice->start;
}

/* A new scope for the queries inside of the entry; its number. */
static uint32_t add_scope(struct walk *walk, Dwarf_Die *die, struct slice inside, uint32_t parent)
{
	bool inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	uint32_t number = (uint32_t)walk->scopes->items.n;

	if (number == UINT32_MAX ||
	    !sf_vec_push(&walk->scopes->items, (struct sf_scope){
		    .die = *die, .parent = inlined ? parent : 0, .inlined = inlined })) {
		walk->failed = true;
		return 0;
	}
	for (size_t i = inside.start; i < inside.start + inside.n; i++)
		walk->scopes->of_query.items[walk->stack.items[i]] = number;
	return number;
}

/* An entry with addresses: a function, an inlined call or a block. */
static void visit_code(struct walk *walk, Dwarf_Die *die, struct slice *slice, uint32_t scope,
		       unsigned depth)
{
	struct slice inside = push_inside(walk, die, *slice), rest;
	int tag = dwarf_tag(die);

	if (!inside.n)
		return;
	if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
		scope = add_scope(walk, die, inside, scope);
	/* The children take what they find out of their copy; we need all of it afterwards. */
	rest = (struct slice){ walk->stack.n, inside.n };
	if (!sf_vec_reserve(&walk->stack, inside.n)) {
		walk->failed = true;
		return;
	}
	memcpy(walk->stack.items + rest.start, walk->stack.items + inside.start,
	       inside.n * sizeof(*walk->stack.items));
	walk->stack.n += inside.n;
	walk_children(walk, die, &rest, scope, depth + 1);
	remove_found(walk, slice, inside);
	walk->stack.n = inside.start;
}

/* An entry around others that says nothing of addresses itself. */
static void visit_container(struct walk *walk, Dwarf_Die *die, struct slice *slice, unsigned depth)
{
	walk_children(walk, die, slice, 0, depth + 1);
	remove_resolved(walk, slice);
}

static bool has_addresses(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

static void visit(struct walk *walk, Dwarf_Die *die, struct slice *slice, uint32_t scope,
		  unsigned depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		if (has_addresses(die))
			visit_code(walk, die, slice, scope, depth);
		if (walk->everywhere && !scope && slice->n)
			visit_container(walk, die, slice, depth);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
		visit_container(walk, die, slice, depth);
		break;
	default:
		if (walk->everywhere && !scope && dwarf_haschildren(die) == 1)
			visit_container(walk, die, slice, depth);
	}
}

/* `scope` is the one that the parent is in. Queries that are answered are removed from the slice. */
static void walk_children(struct walk *walk, Dwarf_Die *parent, struct slice *slice,
			  uint32_t scope, unsigned depth)
{
	Dwarf_Die die;

	if (depth > MAX_DEPTH || dwarf_child(parent, &die) != 0)
		return;
	while (slice->n && !walk->failed && sf_budget_spend(walk->budget)) {
		Dwarf_Die next;

		visit(walk, &die, slice, scope, depth);
		/* Siblings follow: one that does not would make a circle. */
		if (dwarf_siblingof(&die, &next) != 0 || next.addr <= die.addr)
			return;
		die = next;
	}
}

static bool walk_unit(struct walk *walk, Dwarf_Die *unit)
{
	struct slice slice = { .start = 0 };

	walk->stack.n = 0;
	for (uint32_t i = 0; i < walk->scopes->of_query.n; i++) {
		if (!walk->scopes->of_query.items[i])
			walk->stack.items[walk->stack.n++] = i;
	}
	slice.n = walk->stack.n;
	walk_children(walk, unit, &slice, 0, 0);
	return !walk->failed;
}

static bool prepare(struct walk *walk, size_t n)
{
	struct sf_scopes *scopes = walk->scopes;

	scopes->items.n = scopes->of_query.n = 0;
	if (n >= UINT32_MAX || !sf_vec_push(&scopes->items, (struct sf_scope){ 0 }) ||
	    !sf_vec_reserve(&scopes->of_query, n) || !sf_vec_reserve(&walk->stack, n) ||
	    !sf_vec_reserve(&walk->marks, n))
		return false;
	memset(scopes->of_query.items, 0, n * sizeof(uint32_t));
	memset(walk->marks.items, 0, n * sizeof(uint32_t));
	scopes->of_query.n = n;
	return true;
}

bool sf_scopes_find(Dwarf_Die *unit, const struct sf_query *queries, size_t n,
		    struct sf_budget *budget, struct sf_scopes *ret)
{
	struct walk walk = { .queries = queries, .scopes = ret, .budget = budget };
	bool done = prepare(&walk, n) && walk_unit(&walk, unit);

	walk.everywhere = true;
	done = done && walk_unit(&walk, unit);
	sf_vec_deinit(&walk.stack);
	sf_vec_deinit(&walk.marks);
	return done;
}

void sf_scopes_deinit(struct sf_scopes *scopes)
{
	sf_vec_deinit(&scopes->items);
	sf_vec_deinit(&scopes->of_query);
}
