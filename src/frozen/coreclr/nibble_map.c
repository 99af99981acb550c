/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nibble map: where the code blocks of a code heap start. Each nibble stands for 32 bytes of the heap; it is 0, or 1 + the
 * offset of a block's start in units of 4 bytes. The highest nibble of a word comes first. In version 2 a word whose lowest
 * nibble is above 8 says where the block starts that covers all 256 bytes of the word (dotnet/runtime: the design document
 * "Contract ExecutionManager"). Signal-safe.
 */
#include "frozen/coreclr/body.h"

#include "frozen/frozen.h"

#define BUCKET 32u              /* bytes that one nibble stands for */
#define WORD (BUCKET * 8)
#define UNIT 4u
#define MAX_WORDS_BACK 262144u  /* version 1: 64 MB of one method */
#define CHUNK 64u               /* words read at once */

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
	uint32_t words[CHUNK];
	uint64_t left = index < MAX_WORDS_BACK ? index : MAX_WORDS_BACK;

	while (left) {
		const uint64_t n = left < CHUNK ? left : CHUNK, first = index - n;

		if (!sf_read(memory, words, map + first * sizeof(words[0]), n * sizeof(words[0])))
			return false;
		for (uint64_t i = n; i-- > 0;) {
			if (words[i])
				return last_start(base + (first + i) * WORD, words[i], 8, ret);
		}
		index = first;
		left -= n;
	}
	return false;
}

static bool search(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t map,
		   uint64_t base, uint64_t offset, uint64_t *ret)
{
	const uint64_t index = offset / WORD;
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
	if (last_start(base + index * WORD, word, bucket, ret))
		return true;
	if (layout->nibble_map != 2)
		return search_back(memory, map, base, index, ret);
	if (!index || !sf_read(memory, &before, map + (index - 1) * sizeof(before), sizeof(before)))
		return false;
	if (is_pointer(layout, before)) {
		*ret = pointed(base, before);
		return true;
	}
	return last_start(base + (index - 1) * WORD, before, 8, ret);
}

bool sf_clr_find_start(const struct sf_clr_layout *layout, uint64_t heap, const struct sf_reader *memory,
		       uint64_t pc, uint64_t *ret)
{
	uint64_t base, map, end;

	return sf_clr_get(layout, memory, SF_CLR_HEAP_BASE, heap, &base) &&
	       sf_clr_get(layout, memory, SF_CLR_HEAP_MAP, heap, &map) &&
	       sf_clr_get(layout, memory, SF_CLR_HEAP_END, heap, &end) && pc >= base && pc < end &&
	       search(layout, memory, map, base, pc - base, ret) && *ret <= pc && *ret > base;
}
