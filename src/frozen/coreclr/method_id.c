/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids of methods whose code may be freed. By them a method differs from the next one whose structures are in the same places.
 * Signal-safe.
 */
#include "frozen/coreclr/method_id.h"

#include "frozen/frozen.h"

#define CLASS_MASK 7u        /* MethodDesc.Flags (src/coreclr/vm/method.hpp: MethodClassification) */
#define CLASS_DYNAMIC 7u
#define MAX_NAME 128u        /* bytes of a name that count */
#define PAGE 4096u
#define FILE_START 256u      /* bytes of an assembly's file */
#define FNV_PRIME 16777619u  /* of the hash FNV-1a, which is in the public domain */
#define FNV_BASIS 2166136261u

/* The part of a name that is on one page. False: the name goes on. */
static bool add_piece(const struct sf_reader *memory, uint64_t at, size_t size, uint32_t *hash)
{
	uint8_t piece[MAX_NAME];

	if (!sf_read(memory, piece, at, size))
		return true;
	for (size_t i = 0; i < size; i++) {
		if (!piece[i])
			return true;
		*hash = (*hash ^ piece[i]) * FNV_PRIME;
	}
	return false;
}

static uint32_t hash_name(const struct sf_reader *memory, uint64_t at, uint32_t hash)
{
	const size_t on_page = PAGE - (size_t)(at % PAGE), size = on_page < MAX_NAME ? on_page : MAX_NAME;

	if (!add_piece(memory, at, size, &hash) && size < MAX_NAME)
		add_piece(memory, at + size, MAX_NAME - size, &hash);
	return hash;
}

bool sf_clr_chunk_of(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t method, uint64_t *ret)
{
	uint8_t index;

	if (!sf_clr_has(layout, SF_CLR_METHOD_INDEX) || !layout->sizes[SF_CLR_SIZE_CHUNK] ||
	    !sf_read(memory, &index, method + layout->fields[SF_CLR_METHOD_INDEX], 1))
		return false;
	*ret = method - layout->sizes[SF_CLR_SIZE_CHUNK] - (uint64_t)index * layout->method_alignment;
	return true;
}

bool sf_clr_module_mark(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t module, uint32_t *ret)
{
	uint8_t start[FILE_START];
	uint64_t base, name;
	bool any = false;

	*ret = FNV_BASIS;
	if (sf_clr_get(layout, memory, SF_CLR_MODULE_BASE, module, &base) && base && sf_read(memory, start, base, sizeof(start))) {
		for (size_t i = 0; i < sizeof(start); i++)
			*ret = (*ret ^ start[i]) * FNV_PRIME;
		any = true;
	}
	if (!sf_clr_get(layout, memory, SF_CLR_MODULE_NAME, module, &name) || !name)
		return any;
	*ret = hash_name(memory, name, *ret);
	return true;
}

static bool find_mark(const struct sf_clr_layout *layout, const struct sf_reader *memory, uint64_t method, uint32_t *ret)
{
	uint64_t chunk, table, module;

	return sf_clr_chunk_of(layout, memory, method, &chunk) && sf_clr_get(layout, memory, SF_CLR_CHUNK_TABLE, chunk, &table) &&
	       sf_clr_get(layout, memory, SF_CLR_TABLE_MODULE, table, &module) && sf_clr_module_mark(layout, memory, module, ret);
}

uint32_t sf_clr_method_id(const struct sf_clr_layout *layout, const struct sf_clr_range *range, const struct sf_reader *memory,
			  uint64_t method)
{
	const uint32_t id = (uint32_t)(method >> 3);
	uint64_t name;
	uint32_t mark;
	uint16_t flags;

	if (!range->is_collectible || !sf_clr_get_u16(layout, memory, SF_CLR_METHOD_FLAGS, method, &flags))
		return id;
	if ((flags & CLASS_MASK) != CLASS_DYNAMIC)
		return find_mark(layout, memory, method, &mark) ? id ^ mark : id;
	return sf_clr_get(layout, memory, SF_CLR_DYNAMIC_NAME, method, &name) && name ? hash_name(memory, name, id) : id;
}
