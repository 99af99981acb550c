/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks CoreCLR's maps from native to IL offsets, and the numbers in them. */
#include "runtime/coreclr/debug_info.h"

#include <stdlib.h>

#include "frozen/memory/bytes.h"

#define FEW 2048u                /* bytes that are enough for nearly all methods */
#define MANY 65536u
#define HAS_PATCHPOINTS 1u
#define HAS_RICH 2u
#define EXTENDED 0xffffffffu     /* in place of a size: two sizes follow */
#define MAX_ENTRIES 65536u
#define MAX_IL (1u << 24)
#define SOURCE_BITS 2u
#define IL_BIAS 3u               /* -3 epilogue, -2 prologue, -1 no mapping */
#define DEBUG_SECTION 105u       /* READYTORUN_SECTION_DEBUG_INFO */
#define MAX_SECTIONS 64u
#define INDEX_BITS 4u            /* of an index, that choose in a block of a NativeArray */
#define MAX_NIBBLES 11u   /* of a number of 32 bits */
#define HANDLE_NIBBLES 16u

/* --- numbers --- */

static unsigned take(struct sf_clr_nibbles *nibbles)
{
	if (nibbles->has_half) {
		nibbles->has_half = false;
		return nibbles->byte >> 4;
	}
	nibbles->byte = sf_bytes_u8(&nibbles->bytes);
	nibbles->has_half = true;
	return nibbles->byte & 15;
}

uint32_t sf_clr_nibbles_number(struct sf_clr_nibbles *nibbles)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < MAX_NIBBLES; i++) {
		const unsigned nibble = take(nibbles);

		number = number << 3 | (nibble & 7);
		if (!(nibble & 8))
			return number;
	}
	nibbles->bytes.bad = true;
	return 0;
}

uint32_t sf_clr_nibbles_from(struct sf_clr_nibbles *nibbles, uint32_t last)
{
	const uint32_t number = sf_clr_nibbles_number(nibbles);

	return number & 1 ? last - (number >> 1) : last + (number >> 1);
}

uint64_t sf_clr_nibbles_handle(struct sf_clr_nibbles *nibbles)
{
	uint64_t handle = 0;

	for (unsigned i = 0; i < HANDLE_NIBBLES; i++)
		handle |= (uint64_t)take(nibbles) << 4 * i;
	return handle;
}

/* --- maps --- */

/* Up to 32 bits, the lowest first. */
static uint32_t take_bits(struct sf_bytes *bytes, uint64_t *at, unsigned n)
{
	const size_t size = sf_bytes_left(bytes);
	uint32_t number = 0;

	for (unsigned i = 0; i < n; i++, ++*at) {
		if (*at / 8 >= size) {
			bytes->bad = true;
			return 0;
		}
		number |= (uint32_t)(bytes->at[*at / 8] >> *at % 8 & 1) << i;
	}
	return number;
}

/* Takes the parts in front of the map of jitted code; `rich_ret`: the bytes of the one about inlined calls, if it is there. */
static bool take_extras(const struct sf_clr_description *description, struct sf_bytes *bytes, uint32_t *rich_ret)
{
	const uint8_t flags = sf_bytes_u8(bytes);
	struct sf_bytes part;
	uint32_t n;

	*rich_ret = 0;
	if (flags & ~(HAS_PATCHPOINTS | HAS_RICH))
		return false;
	if (flags & HAS_PATCHPOINTS) {
		part = *bytes;
		sf_bytes_take(&part, description->patchpoint_n);
		n = (uint32_t)sf_bytes_number(&part, 4);
		sf_bytes_take(bytes, description->patchpoint_size + UINT64_C(4) * n);
	}
	if (flags & HAS_RICH)
		*rich_ret = (uint32_t)sf_bytes_number(bytes, 4);
	return !bytes->bad;
}

/* A map from code to IL whose entries are being taken. */
struct il_map {
	struct sf_clr_nibbles nibbles;
	bool     is_of_nibbles;        /* an entry is three numbers of nibbles, as in .NET 8 and 9; ... */
	unsigned native_bits, il_bits; /* ... else so many bits, behind SOURCE_BITS */
	uint64_t at;                   /* bits that were taken */
};

/* The difference from the last entry's native offset, and what the entry says of the IL. False: there is none. */
static bool take_entry(struct il_map *map, uint32_t *native_ret, uint32_t *il_ret)
{
	if (map->is_of_nibbles) {
		*native_ret = sf_clr_nibbles_number(&map->nibbles);
		*il_ret = sf_clr_nibbles_number(&map->nibbles);
		sf_clr_nibbles_number(&map->nibbles); /* the source */
	} else {
		take_bits(&map->nibbles.bytes, &map->at, SOURCE_BITS);
		*native_ret = take_bits(&map->nibbles.bytes, &map->at, map->native_bits);
		*il_ret = take_bits(&map->nibbles.bytes, &map->at, map->il_bits);
	}
	return !map->nibbles.bytes.bad;
}

/* Its native offsets ascend, or it is none. */
static bool search(struct sf_bytes *bytes, bool is_of_nibbles, uint32_t native, uint32_t *ret)
{
	struct il_map map = { .nibbles.bytes = *bytes, .is_of_nibbles = is_of_nibbles };
	const uint32_t n = sf_clr_nibbles_number(&map.nibbles);
	uint64_t offset = 0;
	uint32_t more, il;

	*ret = 0;
	if (!is_of_nibbles) {
		map.native_bits = sf_clr_nibbles_number(&map.nibbles) + 1;
		map.il_bits = sf_clr_nibbles_number(&map.nibbles) + 1;
	}
	if (map.nibbles.bytes.bad || n > MAX_ENTRIES || map.native_bits > 32 || map.il_bits > 32)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (!take_entry(&map, &more, &il))
			return false;
		offset += more;
		if (offset > native)
			return true;
		if (il >= IL_BIAS && il < MAX_IL)
			*ret = il - IL_BIAS;
	}
	return true;
}

bool sf_clr_find_il(const struct sf_clr_description *description, const uint8_t *blob, size_t size, bool is_jitted,
		    uint32_t native, uint32_t *ret)
{
	struct sf_bytes bytes = sf_bytes_of(blob, size), bounds;
	struct sf_clr_nibbles sizes;
	uint32_t n, rich = 0;

	if (is_jitted && !take_extras(description, &bytes, &rich))
		return false;
	sf_bytes_take(&bytes, rich);
	sizes = (struct sf_clr_nibbles){ .bytes = bytes };
	n = sf_clr_nibbles_number(&sizes);
	if (n == EXTENDED) {
		n = sf_clr_nibbles_number(&sizes);
		sf_clr_nibbles_number(&sizes);
	}
	sf_clr_nibbles_number(&sizes);
	bounds = sizes.bytes;
	if (bounds.bad || !n || n > sf_bytes_left(&bounds))
		return false;
	bounds = sf_bytes_of(bounds.at, n);
	return search(&bounds, description->has_nibble_maps, native, ret);
}

/* As many of `size` bytes as can be read. */
static size_t read_some(const struct sf_reader *memory, uint64_t at, uint8_t *ret, size_t size)
{
	while (size >= 16 && !sf_read(memory, ret, at, size))
		size /= 2;
	return size >= 16 ? size : 0;
}

static bool find_in_blob(const struct sf_clr_description *description, const struct sf_reader *memory, uint64_t at,
			 bool is_jitted, uint32_t native, uint32_t *ret)
{
	uint8_t few[FEW], *many;
	bool found = sf_clr_find_il(description, few, read_some(memory, at, few, sizeof(few)), is_jitted, native, ret);

	if (found)
		return true;
	many = malloc(MANY);
	found = many && sf_clr_find_il(description, many, read_some(memory, at, many, MANY), is_jitted, native, ret);
	free(many);
	return found;
}

bool sf_clr_jitted_il(const struct sf_clr_description *description, const struct sf_reader *memory,
		      uint64_t header, uint32_t native, uint32_t *ret)
{
	uint64_t blob;

	/* RealCodeHeader: phdrDebugInfo is the first word. */
	return sf_read_u64(memory, header, &blob) && blob && find_in_blob(description, memory, blob, true, native, ret);
}

bool sf_clr_rich_info(const struct sf_clr_description *description, const struct sf_reader *memory, uint64_t header,
		      uint64_t *at_ret, uint32_t *size_ret)
{
	struct sf_bytes bytes;
	uint8_t few[FEW];
	uint64_t blob;

	if (!sf_read_u64(memory, header, &blob) || !blob)
		return false;
	bytes = sf_bytes_of(few, read_some(memory, blob, few, sizeof(few)));
	if (!take_extras(description, &bytes, size_ret) || !*size_ret)
		return false;
	*at_ret = blob + (uint64_t)(bytes.at - few);
	return true;
}

/* The NativeArray of ReadyToRun images (src/coreclr/vm/nativeformatreader.h). */
struct array {
	const struct sf_reader *memory;
	uint64_t base;                /* RVAs count from here */
};

static bool array_number(const struct array *array, uint64_t *rva, uint32_t *ret)
{
	static const uint8_t sizes[16] = { 1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3, 1, 2, 1, 5 };
	uint8_t bytes[5];
	uint32_t number = 0;
	unsigned size;

	if (!sf_read(array->memory, bytes, array->base + *rva, 1))
		return false;
	size = sizes[bytes[0] & 15];
	if (!sf_read(array->memory, bytes, array->base + *rva, size))
		return false;
	*rva += size;
	if (size == 5) {
		*ret = bytes[1] | bytes[2] << 8 | bytes[3] << 16 | (uint32_t)bytes[4] << 24;
		return true;
	}
	for (unsigned i = 0; i < size; i++)
		number |= (uint32_t)bytes[i] << 8 * i;
	*ret = number >> size;
	return true;
}

/* Down the tree of a block of 16 entries; false: the entry is not there. */
static bool array_descend(const struct array *array, uint32_t index, uint64_t *rva)
{
	for (unsigned bit = 1u << (INDEX_BITS - 1); bit; bit >>= 1) {
		uint64_t next = *rva;
		uint32_t value;

		if (!array_number(array, &next, &value))
			return false;
		if (index & bit) {
			if (!(value & 2))
				return (value & 3) == 0 && (value >> 2) == (index & 15) ?
					(*rva = next, true) : false;
			*rva += value >> 2;
		} else if (value & 1) {
			*rva = next;
		} else {
			if ((value & 3) || (value >> 2) != (index & 15))
				return false;
			*rva = next;
			return true;
		}
	}
	return true;
}

static bool array_find(const struct array *array, uint64_t rva, uint32_t index, uint64_t *ret)
{
	uint32_t header, entry = 0;
	unsigned size;

	if (!array_number(array, &rva, &header) || index >= header >> 2 || (header & 3) > 2)
		return false;
	size = 1u << (header & 3);
	if (!sf_read(array->memory, &entry, array->base + rva + (uint64_t)(index >> INDEX_BITS) * size, size))
		return false;
	*ret = rva + entry;
	return array_descend(array, index, ret);
}

struct section {
	uint32_t type, rva, size;
};

static bool find_section(const struct sf_clr_description *description, const struct sf_reader *memory,
			 uint64_t ready, uint32_t *rva_ret)
{
	struct section section;
	uint64_t header;
	uint32_t n;

	if (!sf_clr_get(&description->layout, memory, SF_CLR_READY_HEADER, ready, &header) ||
	    !sf_read(memory, &n, header + 12, sizeof(n)))
		return false;
	for (uint32_t i = 0; i < n && i < MAX_SECTIONS; i++) {
		if (!sf_read(memory, &section, header + 16 + i * sizeof(section), sizeof(section)))
			return false;
		*rva_ret = section.rva;
		if (section.type == DEBUG_SECTION)
			return true;
	}
	return false;
}

bool sf_clr_precompiled_il(const struct sf_clr_description *description, const struct sf_reader *memory,
			   const struct sf_clr_range *range, uint32_t function, uint32_t native,
			   uint32_t *ret)
{
	const struct array array = { memory, range->base };
	uint64_t at, blob;
	uint32_t rva, back;

	if (!find_section(description, memory, range->ready, &rva) ||
	    !array_find(&array, rva, function, &at))
		return false;
	blob = at;
	if (!array_number(&array, &blob, &back))
		return false;
	if (back)
		blob = at - back;
	return find_in_blob(description, memory, range->base + blob, false, native, ret);
}
