/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of code that CoreCLR made, and the fields of its structures. Signal-safe. */
#include "frozen/coreclr/coreclr.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

static bool get(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		enum sf_clr_field field, uint64_t base, void *ret, size_t size)
{
	return sf_clr_has(layout, field) && sf_read(memory, ret, base + layout->fields[field], size);
}

bool sf_clr_get(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		enum sf_clr_field field, uint64_t base, uint64_t *ret)
{
	return get(layout, memory, field, base, ret, sizeof(*ret));
}

bool sf_clr_get_u32(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		    enum sf_clr_field field, uint64_t base, uint32_t *ret)
{
	return get(layout, memory, field, base, ret, sizeof(*ret));
}

bool sf_clr_get_u16(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		    enum sf_clr_field field, uint64_t base, uint16_t *ret)
{
	return get(layout, memory, field, base, ret, sizeof(*ret));
}

const struct sf_clr_range *sf_clr_find_range(const struct sf_coreclr *coreclr, uint64_t pc)
{
	const struct sf_clr_range *range = coreclr->ranges;

	if (!coreclr->n_ranges)
		return NULL;
	/* The last range that does not start above pc; the first if there is none. */
	for (uint32_t n = coreclr->n_ranges; n > 1; n -= n / 2)
		range += range[n / 2].region.start <= pc ? n / 2 : 0;
	return pc >= range->region.start && pc < range->region.end ? range : NULL;
}

#define LEVELS 5
#define LEVEL_BITS 8
#define LEAF_BITS 17                    /* of an address that choose inside a leaf */
#define MAX_LIST 64
#define MARK UINT64_C(1)                /* in pointers of the map */

/* Whether a fragment in the list of a leaf has a section that holds pc. */
static bool is_in_list(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		       uint64_t fragment, uint64_t pc)
{
	uint64_t section, begin, end;

	for (unsigned i = 0; fragment && i < MAX_LIST; i++) {
		if (!sf_clr_get(layout, memory, SF_CLR_FRAGMENT_SECTION, fragment, &section) ||
		    !sf_clr_get(layout, memory, SF_CLR_SECTION_BEGIN, section, &begin) ||
		    !sf_clr_get(layout, memory, SF_CLR_SECTION_END, section, &end) ||
		    (pc >= begin && pc < end) ||
		    !sf_clr_get(layout, memory, SF_CLR_FRAGMENT_NEXT, fragment, &fragment))
			return true;
		fragment &= ~MARK;
	}
	return false;
}

bool sf_clr_is_listed(const struct sf_coreclr *coreclr, const struct sf_reader *memory, uint64_t pc)
{
	uint64_t node = coreclr->range_map + coreclr->layout.fields[SF_CLR_MAP_TOP];

	for (unsigned level = LEVELS; level-- > 0;) {
		const uint64_t index = pc >> (LEAF_BITS + level * LEVEL_BITS) & 255;

		if (!sf_read_u64(memory, node + index * sizeof(node), &node))
			return true;
		node &= ~MARK;
		if (!node)
			return false;
	}
	return is_in_list(&coreclr->layout, memory, node, pc);
}

static const struct sf_region *find_space(const struct sf_coreclr *coreclr, uint64_t pc)
{
	const struct sf_region *space = coreclr->spaces;

	if (!coreclr->n_spaces)
		return NULL;
	for (uint32_t n = coreclr->n_spaces; n > 1; n -= n / 2)
		space += space[n / 2].start <= pc ? n / 2 : 0;
	return pc >= space->start && pc < space->end ? space : NULL;
}

const struct sf_region *sf_clr_find_region(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_coreclr *coreclr = (const struct sf_coreclr *)runtime;
	const struct sf_clr_range *range = sf_clr_find_range(coreclr, pc);

	return range ? &range->region : find_space(coreclr, pc);
}
