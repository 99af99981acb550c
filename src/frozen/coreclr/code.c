/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where code that CoreCLR made is: the ranges of code, the fields of the structures that say more, and the body that a pc is in:
 * in a heap of jitted code, or among the functions of a precompiled image. Signal-safe.
 */
#include "frozen/coreclr/code.h"

#include "frozen/frozen.h"

/* --- ranges of code --- */

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

/*
 * --- the nibble map: where the code blocks of a code heap start ---
 *
 * Each nibble stands for 32 bytes of the heap; it is 0, or 1 + the offset of a block's start in units of 4 bytes. The highest
 * nibble of a word comes first. In version 2 a word whose lowest nibble is above 8 says where the block starts that covers all
 * 256 bytes of the word (dotnet/runtime: the design document "Contract ExecutionManager").
 */

#define BUCKET 32u              /* bytes that one nibble stands for */
#define MAP_WORD (BUCKET * 8)
#define UNIT 4u
#define MAX_WORDS_BACK 262144u  /* version 1: 64 MB of one method */
#define MAP_CHUNK 64u           /* words read at once */

static unsigned nibble(uint32_t word, unsigned index)
{
	return word >> (28 - 4 * index) & 15;
}

static bool is_pointer(const struct sf_clr_layout *layout, uint32_t word)
{
	return layout->nibble_map == 2 && (word & 15) > 8;
}

static uint64_t pointed(uint64_t base, uint32_t word)
{
	return base + (word & ~15u) + ((word & 15) - 9) * UNIT;
}

/* The last start in the word among the nibbles below `end`. */
static bool last_start(uint64_t base, uint32_t word, unsigned end, uint64_t *ret)
{
	for (unsigned i = end; i-- > 0;) {
		const unsigned n = nibble(word, i);

		if (n) {
			*ret = base + i * BUCKET + (n - 1) * UNIT;
			return true;
		}
	}
	return false;
}

/* Version 1: back over words of 0, in pieces. */
static bool search_back(const struct sf_reader *memory, uint64_t map, uint64_t base, uint64_t index,
			uint64_t *ret)
{
	uint32_t words[MAP_CHUNK];
	uint64_t left = index < MAX_WORDS_BACK ? index : MAX_WORDS_BACK;

	while (left) {
		const uint64_t n = left < MAP_CHUNK ? left : MAP_CHUNK, first = index - n;

		if (!sf_read(memory, words, map + first * sizeof(words[0]), n * sizeof(words[0])))
			return false;
		for (uint64_t i = n; i-- > 0;) {
			if (words[i])
				return last_start(base + (first + i) * MAP_WORD, words[i], 8, ret);
		}
		index = first;
		left -= n;
	}
	return false;
}

static bool search_map(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t map,
		   uint64_t base, uint64_t offset, uint64_t *ret)
{
	const uint64_t index = offset / MAP_WORD;
	const unsigned bucket = (unsigned)(offset / BUCKET % 8);
	uint32_t word, before;
	unsigned n;

	if (!sf_read(memory, &word, map + index * sizeof(word), sizeof(word)))
		return false;
	if (is_pointer(layout, word)) {
		*ret = pointed(base, word);
		return true;
	}
	n = nibble(word, bucket);
	if (n && (n - 1) * UNIT <= offset % BUCKET) {
		*ret = base + offset / BUCKET * BUCKET + (n - 1) * UNIT;
		return true;
	}
	if (last_start(base + index * MAP_WORD, word, bucket, ret))
		return true;
	if (layout->nibble_map != 2)
		return search_back(memory, map, base, index, ret);
	if (!index || !sf_read(memory, &before, map + (index - 1) * sizeof(before), sizeof(before)))
		return false;
	if (is_pointer(layout, before)) {
		*ret = pointed(base, before);
		return true;
	}
	return last_start(base + (index - 1) * MAP_WORD, before, 8, ret);
}

bool sf_clr_find_start(const struct sf_clr_layout *layout, uint64_t heap, const struct sf_reader *memory,
		       uint64_t pc, uint64_t *ret)
{
	uint64_t base, map, end;

	return sf_clr_get(layout, memory, SF_CLR_HEAP_BASE, heap, &base) &&
	       sf_clr_get(layout, memory, SF_CLR_HEAP_MAP, heap, &map) &&
	       sf_clr_get(layout, memory, SF_CLR_HEAP_END, heap, &end) && pc >= base && pc < end &&
	       search_map(layout, memory, map, base, pc - base, ret) && *ret <= pc && *ret > base;
}

/* --- bodies --- */

#define MAX_BODIES 4096      /* of one method: its main part and its funclets */
#define CHUNK 16             /* functions read at once */
#define WORD 8

/* The function of a method that holds pc. A method's functions ascend, and the first one is its main part. */
static enum sf_clr_found find_function(const struct sf_clr_range *range, const struct sf_reader *memory,
				       uint64_t functions, uint32_t n, uint64_t pc,
				       struct sf_clr_body *ret)
{
	struct sf_clr_function items[CHUNK];
	const uint64_t rva = pc - range->base;

	for (uint32_t done = 0; done < n; done += CHUNK) {
		const uint32_t now = n - done < CHUNK ? n - done : CHUNK;

		if (!sf_read(memory, items, functions + done * sizeof(items[0]),
			     now * sizeof(items[0])))
			return SF_CLR_FOUND_UNREAD;
		for (uint32_t i = 0; i < now; i++) {
			if (rva < items[i].begin || rva >= items[i].end)
				continue;
			ret->start = range->base + items[i].begin;
			ret->end = range->base + items[i].end;
			ret->unwind = range->base + items[i].unwind;
			return SF_CLR_FOUND_BODY;
		}
	}
	return SF_CLR_FOUND_NOTHING;
}

static enum sf_clr_found find_jitted(const struct sf_clr_layout *layout, const struct sf_clr_range *range,
				     const struct sf_reader *memory, uint64_t pc,
				     struct sf_clr_body *ret)
{
	uint32_t n;

	if (!sf_clr_find_start(layout, range->heap, memory, pc, &ret->method_start))
		return SF_CLR_FOUND_NOTHING;
	if (!sf_read_u64(memory, ret->method_start - WORD, &ret->header))
		return SF_CLR_FOUND_UNREAD;
	if (ret->header <= layout->last_stub_kind) {
		ret->stub_kind = (uint32_t)ret->header;
		return SF_CLR_FOUND_STUB;
	}
	if (!sf_clr_get(layout, memory, SF_CLR_HEADER_METHOD, ret->header, &ret->method) ||
	    !sf_clr_get_u32(layout, memory, SF_CLR_HEADER_N_UNWIND, ret->header, &n))
		return SF_CLR_FOUND_UNREAD;
	if (!n || n > MAX_BODIES || !sf_clr_has(layout, SF_CLR_HEADER_UNWIND))
		return SF_CLR_FOUND_NOTHING;
	return find_function(range, memory, ret->header + layout->fields[SF_CLR_HEADER_UNWIND], n,
			     pc, ret);
}

/* The last function that does not begin above; the first if there is none. */
static uint32_t search_functions(const struct sf_clr_functions *functions, uint64_t rva)
{
	uint32_t at = 0;

	for (uint32_t n = functions->n; n > 1; n -= n / 2)
		at += functions->items[at + n / 2].begin <= rva ? n / 2 : 0;
	return at;
}

static enum sf_clr_found find_precompiled(const struct sf_clr_range *range, uint64_t pc,
					  struct sf_clr_body *ret)
{
	const struct sf_clr_functions *functions = range->functions;
	const uint64_t rva = pc - range->base;
	const struct sf_clr_function *found;

	if (pc >= range->thunks && pc < range->thunks_end)
		return SF_CLR_FOUND_STUB;
	if (!functions || !functions->n)
		return SF_CLR_FOUND_NOTHING;
	ret->function = search_functions(functions, rva);
	found = &functions->items[ret->function];
	if (rva < found->begin || rva >= found->end)
		return SF_CLR_FOUND_NOTHING;
	ret->start = ret->method_start = range->base + found->begin;
	ret->end = range->base + found->end;
	ret->unwind = range->base + found->unwind;
	return SF_CLR_FOUND_BODY;
}

enum sf_clr_found sf_clr_find_body(const struct sf_clr_layout *layout, const struct sf_clr_range *range,
				   const struct sf_reader *memory, uint64_t pc,
				   struct sf_clr_body *ret)
{
	*ret = (struct sf_clr_body){ 0 };
	switch ((enum sf_clr_code)range->code) {
	case SF_CLR_CODE_JITTED:
		return find_jitted(layout, range, memory, pc, ret);
	case SF_CLR_CODE_PRECOMPILED:
		return find_precompiled(range, pc, ret);
	case SF_CLR_CODE_STUBS:
		ret->stub_kind = range->stub_kind;
		return SF_CLR_FOUND_STUB;
	}
	return SF_CLR_FOUND_NOTHING;
}
