/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata cache of HotSpot walks, shared by all threads without a lock. Signal-safe; a walk
 * must revalidate the entries that it used before its sample is emitted.
 */
#include "frozen/hotspot/metadata_cache.h"

#include <string.h>

#include "frozen/memory/hash.h"

#include "frozen/frozen.h"

_Static_assert(SF_CACHED_METADATA < UINT8_MAX, "a mark holds any number");
_Static_assert(sizeof(struct sf_method) == 8 * SF_METHOD_WORDS, "kept in whole words");

void sf_metadata_cache_begin(struct sf_metadata_cache *trust)
{
	trust->is_over = false;
	trust->n = 0;
	if (trust->known)
		memset(trust->marks, 0, sizeof(trust->marks));
}

void sf_metadata_cache_end(struct sf_metadata_cache *trust)
{
	sf_metadata_cache_begin(trust);
	trust->is_over = true;
	for (unsigned i = 0; trust->known && i < SF_HOTSPOT_NAMES; i++)
		atomic_store_explicit(&trust->known->names.known[i], 0, memory_order_relaxed);
}

static bool is_same(const uint64_t *a, const uint64_t *b)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < SF_METHOD_WORDS; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* Notes that the walk uses this entry. False: there is no room for one more. */
static bool take(struct sf_metadata_cache *trust, const uint64_t *method)
{
	uint8_t *mark = &trust->marks[sf_hash(method[0] >> 6, 32) % SF_METADATA_CACHE_MARKS];

	if (*mark && is_same(trust->methods[*mark - 1u], method))
		return true;
	if (trust->n == SF_CACHED_METADATA)
		return false;
	memcpy(trust->methods[trust->n++], method, sizeof(trust->methods[0]));
	*mark = (uint8_t)trust->n;
	return true;
}

static _Atomic uint64_t *method_of(struct sf_known *known, uint64_t address)
{
	return known->methods[sf_hash(address, 32) % SF_KNOWN_METHODS];
}

bool sf_metadata_cache_blob(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		   const struct sf_reader *memory, uint64_t pc, struct sf_blob *ret)
{
	uint64_t start;

	if (!trust || !trust->known)
		return sf_hotspot_blob(hotspot, memory, pc, ret);
	start = sf_hotspot_blob_start(hotspot, memory, pc);
	return start && sf_hotspot_blob_at(hotspot, memory, start, pc, &trust->known->names, ret);
}

bool sf_metadata_cache_method(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const struct sf_reader *memory, uint64_t address, struct sf_method *ret)
{
	_Atomic uint64_t *known;
	uint64_t words[SF_METHOD_WORDS];

	if (!trust || !trust->known)
		return sf_hotspot_method(hotspot, memory, address, ret);
	known = method_of(trust->known, address);
	for (size_t i = 0; i < SF_METHOD_WORDS; i++)
		words[i] = atomic_load_explicit(&known[i], memory_order_relaxed);
	memcpy(ret, words, sizeof(*ret));
	if (!trust->is_over && address && ret->address == address && take(trust, words))
		return true;
	if (!sf_hotspot_method(hotspot, memory, address, ret))
		return false;
	memcpy(words, ret, sizeof(*ret));
	for (size_t i = 0; i < SF_METHOD_WORDS; i++)
		atomic_store_explicit(&known[i], words[i], memory_order_relaxed);
	return true;
}

static size_t add_piece(struct iovec *ret, uint64_t address, size_t size)
{
	*ret = (struct iovec){ .iov_base = (void *)(uintptr_t)address, .iov_len = size };
	return size;
}

unsigned sf_metadata_cache_pieces(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot, size_t *size_ret)
{
	const uint64_t link = hotspot->fields[SF_HS_METHOD_CONST].at;
	struct iovec *piece = trust->pieces;
	struct sf_method method;
	size_t size = 0;

	for (uint32_t i = 0; i < trust->n; i++) {
		memcpy(&method, trust->methods[i], sizeof(method));
		size += add_piece(piece++, method.address + link, sizeof(uint64_t));
		size += add_piece(piece++, method.constant, hotspot->sizes[SF_HS_SIZE_CONST_METHOD]);
	}
	*size_ret = size;
	return (unsigned)(piece - trust->pieces);
}

static bool is_method(const struct sf_hotspot *hotspot, const uint64_t *taken, const uint8_t *bytes)
{
	uint64_t words[SF_METHOD_WORDS], constant;
	struct sf_method now;

	memcpy(&constant, bytes, sizeof(constant));
	if (!sf_hotspot_method_from(hotspot, taken[0], constant, bytes + sizeof(constant), &now))
		return false;
	memcpy(words, &now, sizeof(now));
	return is_same(words, taken);
}

bool sf_metadata_cache_stands(const struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const uint8_t *bytes)
{
	const size_t size = sizeof(uint64_t) + hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	bool all = true;

	for (uint32_t i = 0; i < trust->n; i++) {
		const uint64_t *taken = trust->methods[i];

		if (bytes && is_method(hotspot, taken, bytes + i * size))
			continue;
		atomic_store_explicit(method_of(trust->known, taken[0]), 0, memory_order_relaxed);
		all = false;
	}
	return all;
}
