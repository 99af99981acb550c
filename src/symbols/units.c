/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the DWARF unit of an address. Each unit's own ranges are used, not .debug_aranges: clang does
 * not write that section, and after `ld -r` or LTO it lacks units. Reading the first entry of every unit
 * is cheap: a thousandth of the data.
 */
#include <dwarf.h>

#include "symbols/dwarf_symbols.h"

/* next[i]: the first query from i on that has no unit yet, with shortcuts. */
struct assignment {
	struct sf_query *queries;
	size_t *next;
	size_t n;
};

static size_t next_free(struct assignment *assignment, size_t i)
{
	size_t found = i;

	while (assignment->next[found] != found)
		found = assignment->next[found];
	while (assignment->next[i] != found) {
		size_t following = assignment->next[i];

		assignment->next[i] = found;
		i = following;
	}
	return found;
}

static size_t first_from(const struct assignment *assignment, uint64_t address)
{
	size_t low = 0, high = assignment->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (assignment->queries[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void assign_range(struct assignment *assignment, uint64_t start, uint64_t end,
			 Dwarf_Off unit)
{
	size_t i = next_free(assignment, first_from(assignment, start));

	while (i < assignment->n && assignment->queries[i].address < end) {
		assignment->queries[i].unit = unit;
		assignment->next[i] = i + 1;
		i = next_free(assignment, i);
	}
}

/* Functions that the linker dropped keep ranges from 0 or 1 on: those are nobody's code. */
static void assign_unit(struct assignment *assignment, Dwarf_Die *die, const struct sf_elf *image,
			struct sf_budget *budget)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while (sf_budget_spend(budget) &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (start < end && sf_elf_is_code(image, start))
			assign_range(assignment, start, end, dwarf_dieoffset(die));
	}
}

static void assign_all(struct assignment *assignment, Dwarf *dwarf, const struct sf_elf *image,
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
			assign_unit(assignment, &die, image, budget);
		offset = next;
	}
}

/* Units that do not say where their code is may be in .debug_aranges all the same. */
static void ask_aranges(struct assignment *assignment, Dwarf *dwarf)
{
	Dwarf_Aranges *aranges;
	size_t n;

	if (dwarf_getaranges(dwarf, &aranges, &n) != 0)
		return;
	for (size_t i = next_free(assignment, 0); i < assignment->n;
	     i = next_free(assignment, i + 1)) {
		struct sf_query *query = &assignment->queries[i];
		Dwarf_Arange *arange = dwarf_getarange_addr(aranges, query->address);
		Dwarf_Off offset;

		if (arange && dwarf_getarangeinfo(arange, NULL, NULL, &offset) == 0)
			query->unit = offset;
	}
}

bool sf_units_assign(Dwarf *dwarf, const struct sf_elf *image, struct sf_query *queries, size_t n,
		     struct sf_budget *budget)
{
	struct assignment assignment = { queries, calloc(n + 1, sizeof(size_t)), n };

	if (!assignment.next)
		return false;
	for (size_t i = 0; i <= n; i++)
		assignment.next[i] = i;
	assign_all(&assignment, dwarf, image, budget);
	if (next_free(&assignment, 0) < n)
		ask_aranges(&assignment, dwarf);
	free(assignment.next);
	return true;
}
