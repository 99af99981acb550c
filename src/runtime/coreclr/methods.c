/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads MethodDescs, and finds those of code (src/coreclr/vm/method.hpp, readytoruninfo.cpp, codeversion.h in
 * dotnet/runtime).
 */
#include "runtime/coreclr/methods.h"

#include "frozen/coreclr/method_id.h"

#define KIND_MASK 7u
#define IS_TIERED 0x8000u             /* Flags3: enum_flag3_IsEligibleForTieredCompilation */
#define TOKEN_BITS 24
#define MAX_BACK 4096u                /* functions of one method */
#define MAX_PROBES 4096u
#define MAX_BUCKETS (1u << 24)
#define MAX_VERSIONS 256u
#define BUCKET_SIZE 64u
#define SLOTS 4
#define VALUE_MASK UINT64_C(0x7fffffffffffffff)
#define RESERVED_KEYS 1u              /* keys up to here are stored with 100 added */
#define TIER_OFFSET 36u               /* NativeCodeVersionNode: m_optTier. No descriptor of .NET 10 says so */

static bool get(const struct sf_clr_description *description, const struct sf_reader *memory,
		enum sf_clr_field field, uint64_t base, uint64_t *ret)
{
	return sf_clr_get(&description->layout, memory, field, base, ret);
}

static bool get_u16(const struct sf_clr_description *description, const struct sf_reader *memory,
		    enum sf_clr_field field, uint64_t base, uint16_t *ret)
{
	return sf_clr_get_u16(&description->layout, memory, field, base, ret);
}

bool sf_clr_read_method(const struct sf_clr_description *description, const struct sf_reader *memory,
			uint64_t desc, struct sf_clr_method *ret)
{
	const unsigned bits = description->token_bits;
	uint16_t flags, flags3, range;
	uint64_t chunk;

	*ret = (struct sf_clr_method){ .desc = desc };
	if (!desc || !bits || !get_u16(description, memory, SF_CLR_METHOD_FLAGS, desc, &flags) ||
	    !get_u16(description, memory, SF_CLR_METHOD_FLAGS3, desc, &flags3) ||
	    !sf_clr_chunk_of(&description->layout, memory, desc, &chunk) ||
	    !get_u16(description, memory, SF_CLR_CHUNK_FLAGS, chunk, &range) ||
	    !get(description, memory, SF_CLR_CHUNK_TABLE, chunk, &ret->table) ||
	    !get(description, memory, SF_CLR_TABLE_MODULE, ret->table, &ret->module))
		return false;
	ret->kind = flags & KIND_MASK;
	ret->is_tiered = flags3 & IS_TIERED;
	if (ret->kind != SF_CLR_METHOD_DYNAMIC)
		ret->row = (range & ((1u << (TOKEN_BITS - bits)) - 1)) << bits |
			   (flags3 & ((1u << bits) - 1));
	return true;
}

uint64_t sf_clr_jitted_method(const struct sf_clr_description *description,
			      const struct sf_reader *memory, uint64_t start)
{
	uint64_t header, method;

	if (!sf_read_u64(memory, start - 8, &header) ||
	    header <= description->layout.last_stub_kind ||
	    !get(description, memory, SF_CLR_HEADER_METHOD, header, &method))
		return 0;
	return method;
}

/* The runtime's HashMap (src/coreclr/vm/hash.h), by double hashing. *ret: 0 if it is not there. False: it cannot be read. */
static bool look_up(const struct sf_clr_description *description, const struct sf_reader *memory,
		    uint64_t map, uint64_t address, uint64_t *ret)
{
	const uint64_t key = address <= RESERVED_KEYS ? address + 100 : address;
	uint64_t buckets, slots[2 * SLOTS];
	uint32_t n, hash = (uint32_t)(key >> 2), step;

	*ret = 0;
	if (!get(description, memory, SF_CLR_HASH_BUCKETS, map, &buckets) ||
	    !sf_read(memory, &n, buckets, sizeof(n)) || n < 2 || n > MAX_BUCKETS)
		return false;
	step = 1 + ((uint32_t)(key >> 5) + 1) % (n - 1);
	for (unsigned i = 0; i < MAX_PROBES && i < n; i++, hash += step) {
		const uint64_t bucket = buckets + BUCKET_SIZE * (UINT64_C(1) + hash % n);

		if (!sf_read(memory, slots, bucket, sizeof(slots)))
			return false;
		for (unsigned k = 0; k < SLOTS && !*ret; k++) {
			if (slots[k] == key)
				*ret = (slots[SLOTS + k] & VALUE_MASK) << 1;
		}
		if (*ret || !(slots[SLOTS] & ~VALUE_MASK))
			return true;
	}
	return true;
}

/* The hot part of the last of n pairs { cold, hot } that does not begin above. False: one cannot be read. */
static bool search_pairs(const struct sf_reader *memory, uint64_t pairs, uint32_t n, uint32_t *function)
{
	uint32_t pair[2], low = 0;

	for (uint32_t left = n; left > 1; left -= left / 2) {
		if (!sf_read(memory, pair, pairs + (uint64_t)(low + left / 2) * sizeof(pair), sizeof(pair)))
			return false;
		if (pair[0] <= *function)
			low += left / 2;
	}
	if (!sf_read(memory, pair, pairs + (uint64_t)low * sizeof(pair), sizeof(pair)))
		return false;
	if (pair[0] <= *function)
		*function = pair[1];
	return true;
}

/* A cold part stands for its hot one, which takes its place. The pairs ascend. False: they cannot be read. */
static bool find_hot(const struct sf_clr_description *description, const struct sf_reader *memory,
		     uint64_t ready, uint32_t *function)
{
	uint64_t pairs;
	uint32_t n;

	if (!sf_clr_has(&description->layout, SF_CLR_READY_COLD) || !sf_clr_has(&description->layout, SF_CLR_READY_N_COLD))
		return true;
	if (!get(description, memory, SF_CLR_READY_COLD, ready, &pairs) ||
	    !sf_clr_get_u32(&description->layout, memory, SF_CLR_READY_N_COLD, ready, &n))
		return false;
	return !pairs || n < 2 || search_pairs(memory, pairs, n / 2, function);
}

uint64_t sf_clr_precompiled_method(const struct sf_clr_description *description,
				   const struct sf_reader *memory, const struct sf_clr_range *range,
				   uint32_t *function)
{
	const uint64_t map = range->ready + description->layout.fields[SF_CLR_READY_METHODS];
	uint32_t at = *function;
	uint64_t found;

	if (!sf_clr_has(&description->layout, SF_CLR_READY_METHODS) || !find_hot(description, memory, range->ready, &at) ||
	    at >= range->functions->n)
		return 0;
	/* Funclets follow their method. Behind one that cannot be read it would be another method. */
	for (unsigned i = 0; i < MAX_BACK; i++, at--) {
		if (!look_up(description, memory, map, range->base + range->functions->items[at].begin, &found))
			return 0;
		*function = at;
		if (found || !at)
			return found;
	}
	return 0;
}

enum sf_clr_tier sf_clr_tier_of(const struct sf_clr_description *description,
				const struct sf_reader *memory, const struct sf_clr_method *method,
				uint64_t start)
{
	const enum sf_clr_tier original = method->is_tiered ? SF_CLR_TIER_0 : SF_CLR_TIER_OPTIMIZED;
	uint64_t data, versions, node, code;
	uint32_t tier;

	if (!get(description, memory, SF_CLR_METHOD_CODE, method->desc, &data))
		return SF_CLR_TIER_UNKNOWN;
	if (!data)
		return original;
	if (!get(description, memory, SF_CLR_CODE_VERSIONS, data, &versions))
		return SF_CLR_TIER_UNKNOWN;
	if (!versions)
		return original;
	if (!get(description, memory, SF_CLR_VERSIONS_FIRST, versions, &node))
		return SF_CLR_TIER_UNKNOWN;
	for (unsigned i = 0; node && i < MAX_VERSIONS; i++) {
		if (!get(description, memory, SF_CLR_VERSION_CODE, node, &code))
			return SF_CLR_TIER_UNKNOWN;
		if (code == start)
			return sf_read(memory, &tier, node + TIER_OFFSET, sizeof(tier)) &&
			       tier < SF_CLR_TIER_UNKNOWN ? tier : SF_CLR_TIER_UNKNOWN;
		if (!get(description, memory, SF_CLR_VERSION_NEXT, node, &node))
			return SF_CLR_TIER_UNKNOWN;
	}
	return original;
}
