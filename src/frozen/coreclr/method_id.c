/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of methods whose code may be freed: what tells a method from the next one whose structures are in the same places. Signal-safe. */
#include "frozen/coreclr/method_id.h"

#include "frozen/frozen.h"

#define CLASS_MASK 7u        /* MethodDesc.Flags (src/coreclr/vm/method.hpp: MethodClassification) */
#define CLASS_DYNAMIC 7u
#define MAX_NAME 128u        /* bytes of a name that count */
#define PAGE 4096u
#define FNV_PRIME 16777619u  /* of the hash FNV-1a, which is in the public domain */

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

uint32_t sf_clr_method_id(const struct sf_clr_layout *layout, const struct sf_clr_range *range, const struct sf_reader *memory,
			  uint64_t method)
{
	const uint32_t id = (uint32_t)(method >> 3);
	uint64_t name;
	uint16_t flags;

	if (!range->is_collectible || !sf_clr_get_u16(layout, memory, SF_CLR_METHOD_FLAGS, method, &flags) ||
	    (flags & CLASS_MASK) != CLASS_DYNAMIC || !sf_clr_get(layout, memory, SF_CLR_DYNAMIC_NAME, method, &name) || !name)
		return id;
	return hash_name(memory, name, id);
}
