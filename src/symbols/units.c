/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the DWARF unit of an address. Each unit's own ranges are used, not .debug_aranges: clang does
 * not write that section, and after `ld -r` or LTO it lacks units. Reading the first entry of every unit
 * is cheap: a thousandth of the data.
 */
#include <dwarf.h>

#include "symbols/dwarf_symbols.h"

size_t sf_queries_from(const struct sf_query *queries, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (queries[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Functions that the linker dropped keep ranges from 0 or 1 on, where no code is. */
static void assign_unit(struct sf_query *queries, size_t n, Dwarf_Die *die,
			const struct sf_elf *image, struct sf_budget *budget)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while (sf_budget_spend(budget) &&
	       (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (start >= end || !sf_elf_is_code(image, start))
			continue;
		for (size_t i = sf_queries_from(queries, n, start);
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
