/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where functions begin and end, from call frame information. */
#include "symbols/function_ranges.h"

#include <stdlib.h>

/* Chromium has fewer than a million; the bound is against sections full of tiny entries. */
#define MAX_RANGES ((size_t)4 << 20)

/* False for a function that the linker dropped: it keeps an entry in .debug_frame, from 0 or 1 on. */
static bool is_code(const struct sf_elf *elf, const struct sf_fde *fde)
{
	return fde->start < fde->end && fde->start >= elf->code_start && fde->end <= elf->code_end;
}

static bool add_section(const struct sf_elf *elf, const struct sf_cfi *cfi,
			struct sf_function_ranges *ret)
{
	struct sf_cfi_cursor cursor = { 0 };
	uint64_t cie_offset = UINT64_MAX; /* no entry is there */
	struct sf_cie cie;
	bool good = false;
	struct sf_fde fde;

	while (ret->items.n < MAX_RANGES && sf_cfi_next(cfi, &cursor)) {
		if (cursor.cie != cie_offset)
			good = sf_cie_read(cfi, cursor.cie, &cie);
		cie_offset = cursor.cie;
		if (!good || !sf_fde_read(&cursor, &cie, &fde) || !is_code(elf, &fde))
			continue;
		if (!sf_vec_push(&ret->items, (struct sf_function_range){ fde.start, fde.end }))
			return false;
	}
	return true;
}

static int compare(const void *a_arg, const void *b_arg)
{
	const struct sf_function_range *a = a_arg, *b = b_arg;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

bool sf_function_ranges_read(struct sf_elf *elf, struct sf_function_ranges *ret)
{
	struct sf_cfi cfi;

	if (sf_elf_eh_frame(elf, &cfi) && !add_section(elf, &cfi, ret))
		return false;
	if (sf_elf_debug_frame(elf, &cfi) && !add_section(elf, &cfi, ret))
		return false;
	if (ret->items.n)
		qsort(ret->items.items, ret->items.n, sizeof(*ret->items.items), compare);
	return true;
}

const struct sf_function_range *sf_function_ranges_find(const struct sf_function_ranges *ranges,
							uint64_t address)
{
	size_t low = 0, high = ranges->items.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= ranges->items.items[low - 1].end)
		return NULL;
	return &ranges->items.items[low - 1];
}

void sf_function_ranges_deinit(struct sf_function_ranges *ranges)
{
	sf_vec_deinit(&ranges->items);
}
