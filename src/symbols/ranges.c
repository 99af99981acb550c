/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses: sorting, finding, and reading those of functions from call frame information. */
#include "symbols/ranges.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a_arg, const void *b_arg)
{
	const struct sf_range *a = a_arg, *b = b_arg;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->end != b->end || !a->name || !b->name)
		return (a->end > b->end) - (a->end < b->end);
	return strcmp(b->name, a->name); /* any order, but always the same one */
}

void sf_ranges_sort(struct sf_ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->items, ranges->n, sizeof(*ranges->items), compare);
}

size_t sf_ranges_before(const struct sf_range *sorted, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sorted[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct sf_range *sf_ranges_find(const struct sf_ranges *sorted, uint64_t address)
{
	size_t n = sf_ranges_before(sorted->items, sorted->n, address);

	return n && address < sorted->items[n - 1].end ? &sorted->items[n - 1] : NULL;
}

/* Chromium has fewer than a million; the bound is against sections full of tiny entries. */
#define MAX_RANGES ((size_t)4 << 20)

/* False for a function that the linker dropped: it keeps an entry in .debug_frame, from 0 or 1 on. */
static bool is_code(const struct sf_elf *elf, const struct sf_fde *fde)
{
	return fde->start < fde->end && fde->start >= elf->code_start && fde->end <= elf->code_end;
}

static bool add_section(const struct sf_elf *elf, const struct sf_cfi *cfi,
			struct sf_ranges *ret)
{
	struct sf_cfi_cursor cursor = { 0 };
	uint64_t cie_offset = UINT64_MAX; /* no entry is there */
	struct sf_cie cie;
	bool good = false;
	struct sf_fde fde;

	while (ret->n < MAX_RANGES && sf_cfi_next(cfi, &cursor)) {
		if (cursor.cie != cie_offset)
			good = sf_cie_read(cfi, cursor.cie, &cie);
		cie_offset = cursor.cie;
		if (!good || !sf_fde_read(&cursor, &cie, &fde) || !is_code(elf, &fde))
			continue;
		if (!sf_vec_push(ret, (struct sf_range){ .start = fde.start, .end = fde.end }))
			return false;
	}
	return true;
}

bool sf_ranges_read_functions(struct sf_elf *elf, struct sf_ranges *ret)
{
	struct sf_cfi cfi;

	if ((sf_elf_eh_frame(elf, &cfi) && !add_section(elf, &cfi, ret)) ||
	    (sf_elf_debug_frame(elf, &cfi) && !add_section(elf, &cfi, ret)))
		return false;
	sf_ranges_sort(ret);
	return true;
}
