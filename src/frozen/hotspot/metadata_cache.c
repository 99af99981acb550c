/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata cache of HotSpot walks, shared by all threads without a lock. Signal-safe; a walk
 * must revalidate the entries that it used before its sample is emitted.
 */
#include "frozen/hotspot/metadata_cache.h"

#include <string.h>

#include "frozen/memory/hash.h"

#include "frozen/frozen.h"

/*
 * The start of a piece of code is cached under two keys. One key is the 64-byte block of the address: HotSpot does not
 * divide its heap further, so the whole block belongs to one piece. The other key is the 4 KiB around the address, an
 * entry that another piece may replace.
 */
#define NEAR 6
#define FAR 12

_Static_assert(SF_CACHED_METADATA < UINT8_MAX, "a mark holds any number");
_Static_assert(sizeof(struct sf_blob) == 8 * SF_BLOB_WORDS &&
	       sizeof(struct sf_method) == 8 * SF_METHOD_WORDS, "kept in whole words");

void sf_metadata_cache_begin(struct sf_metadata_cache *trust)
{
	trust->is_over = false;
	trust->of_blobs.n = trust->of_methods.n = 0;
	if (!trust->known)
		return;
	memset(trust->of_blobs.marks, 0, sizeof(trust->of_blobs.marks));
	memset(trust->of_methods.marks, 0, sizeof(trust->of_methods.marks));
}

void sf_metadata_cache_end(struct sf_metadata_cache *trust)
{
	sf_metadata_cache_begin(trust);
	trust->is_over = true;
	for (unsigned i = 0; trust->known && i < SF_HOTSPOT_NAMES; i++)
		atomic_store_explicit(&trust->known->names.known[i], 0, memory_order_relaxed);
}

/* --- what is known, in words --- */

static void keep(_Atomic uint64_t *known, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		atomic_store_explicit(&known[i], words[i], memory_order_relaxed);
}

static void look(const _Atomic uint64_t *known, uint64_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = atomic_load_explicit(&known[i], memory_order_relaxed);
}

static bool is_same(const uint64_t *a, const uint64_t *b, size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* --- what is taken --- */

/* Both begin with the address that they are known by. False: there is no room for one more. */
static bool take(struct sf_stack_copy *taken, uint64_t *items, const uint64_t *item, size_t n)
{
	uint8_t *mark = &taken->marks[sf_hash(item[0] >> NEAR, 32) % SF_METADATA_CACHE_MARKS];

	if (*mark && is_same(items + (*mark - 1u) * n, item, n))
		return true;
	if (taken->n == SF_CACHED_METADATA)
		return false;
	memcpy(items + taken->n++ * n, item, n * sizeof(*item));
	*mark = (uint8_t)taken->n;
	return true;
}

static _Atomic uint64_t *start_of(struct sf_known *known, uint64_t pc, unsigned log2_size)
{
	return &known->starts[sf_hash(pc >> log2_size, 32) % SF_KNOWN_FRAME_KEYS];
}

static _Atomic uint64_t *blob_of(struct sf_known *known, uint64_t address)
{
	return known->blobs[sf_hash(address, 32) % SF_KNOWN_BLOBS];
}

static _Atomic uint64_t *method_of(struct sf_known *known, uint64_t address)
{
	return known->methods[sf_hash(address, 32) % SF_KNOWN_METHODS];
}

/* The piece at `address`, if it is known, and holds pc. */
static bool take_blob(struct sf_metadata_cache *trust, uint64_t address, uint64_t pc, struct sf_blob *ret)
{
	uint64_t words[SF_BLOB_WORDS];

	look(blob_of(trust->known, address), words, SF_BLOB_WORDS);
	memcpy(ret, words, sizeof(*ret));
	return !trust->is_over && address && ret->address == address && pc >= ret->code_start &&
	       pc < ret->code_end && take(&trust->of_blobs, trust->blobs[0], words, SF_BLOB_WORDS);
}

static bool take_blob_near(struct sf_metadata_cache *trust, unsigned log2_size, uint64_t pc,
			   struct sf_blob *ret)
{
	const uint64_t start = atomic_load_explicit(start_of(trust->known, pc, log2_size),
						    memory_order_relaxed);

	return take_blob(trust, start, pc, ret);
}

static void keep_start(struct sf_known *known, unsigned log2_size, uint64_t pc, uint64_t start)
{
	atomic_store_explicit(start_of(known, pc, log2_size), start, memory_order_relaxed);
}

static bool read_blob(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		      const struct sf_reader *memory, uint64_t address, uint64_t pc,
		      struct sf_blob *ret)
{
	uint64_t words[SF_BLOB_WORDS];

	if (!sf_hotspot_blob_at(hotspot, memory, address, pc, &trust->known->names, ret))
		return false;
	memcpy(words, ret, sizeof(*ret));
	keep(blob_of(trust->known, address), words, SF_BLOB_WORDS);
	return true;
}

bool sf_metadata_cache_blob(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		   const struct sf_reader *memory, uint64_t pc, struct sf_blob *ret)
{
	uint64_t start;

	if (!trust || !trust->known)
		return sf_hotspot_blob(hotspot, memory, pc, ret);
	if (sf_hotspot_loads(hotspot, pc, 1)) {
		start = sf_hotspot_blob_start(hotspot, memory, pc);
		return start && sf_hotspot_blob_at(hotspot, memory, start, pc, &trust->known->names, ret);
	}
	if (take_blob_near(trust, NEAR, pc, ret))
		return true;
	if (!take_blob_near(trust, FAR, pc, ret)) {
		start = sf_hotspot_blob_start(hotspot, memory, pc);
		if (!start || (!take_blob(trust, start, pc, ret) &&
			       !read_blob(trust, hotspot, memory, start, pc, ret)))
			return false;
		keep_start(trust->known, FAR, pc, start);
	}
	keep_start(trust->known, NEAR, pc, ret->address);
	return true;
}

bool sf_metadata_cache_method(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const struct sf_reader *memory, uint64_t address, struct sf_method *ret)
{
	uint64_t words[SF_METHOD_WORDS];

	if (!trust || !trust->known)
		return sf_hotspot_method(hotspot, memory, address, ret);
	if (!trust->is_over) {
		look(method_of(trust->known, address), words, SF_METHOD_WORDS);
		memcpy(ret, words, sizeof(*ret));
		if (address && ret->address == address &&
		    take(&trust->of_methods, trust->methods[0], words, SF_METHOD_WORDS))
			return true;
	}
	if (!sf_hotspot_method(hotspot, memory, address, ret))
		return false;
	memcpy(words, ret, sizeof(*ret));
	keep(method_of(trust->known, address), words, SF_METHOD_WORDS);
	return true;
}

/* --- whether it stands --- */

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

	for (uint32_t i = 0; i < trust->of_blobs.n; i++)
		size += add_piece(piece++, sf_hotspot_header(hotspot, trust->blobs[i][0]),
				  hotspot->header_size);
	for (uint32_t i = 0; i < trust->of_methods.n; i++) {
		memcpy(&method, trust->methods[i], sizeof(method));
		size += add_piece(piece++, method.address + link, sizeof(uint64_t));
		size += add_piece(piece++, method.constant, hotspot->sizes[SF_HS_SIZE_CONST_METHOD]);
	}
	*size_ret = size;
	return (unsigned)(piece - trust->pieces);
}

static bool is_blob(const struct sf_hotspot *hotspot, const uint64_t *taken, const uint8_t *header)
{
	uint64_t words[SF_BLOB_WORDS];
	struct sf_blob then, now;

	memcpy(&then, taken, sizeof(then));
	if (!sf_hotspot_blob_from(hotspot, then.address, then.class, header, &now))
		return false;
	memcpy(words, &now, sizeof(now));
	return is_same(words, taken, SF_BLOB_WORDS);
}

static bool is_method(const struct sf_hotspot *hotspot, const uint64_t *taken, const uint8_t *bytes)
{
	uint64_t words[SF_METHOD_WORDS], constant;
	struct sf_method now;

	memcpy(&constant, bytes, sizeof(constant));
	if (!sf_hotspot_method_from(hotspot, taken[0], constant, bytes + sizeof(constant), &now))
		return false;
	memcpy(words, &now, sizeof(now));
	return is_same(words, taken, SF_METHOD_WORDS);
}

/* Both kinds begin with the address that they are known by. */
static bool or_forget(bool stands, _Atomic uint64_t *known)
{
	if (!stands)
		atomic_store_explicit(known, 0, memory_order_relaxed);
	return stands;
}

bool sf_metadata_cache_stands(const struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const uint8_t *bytes)
{
	const size_t of_method = sizeof(uint64_t) + hotspot->sizes[SF_HS_SIZE_CONST_METHOD];
	bool stands = true;
	size_t at = 0;

	for (uint32_t i = 0; i < trust->of_blobs.n; i++, at += hotspot->header_size) {
		const uint64_t *taken = trust->blobs[i];

		stands &= or_forget(bytes && is_blob(hotspot, taken, bytes + at),
				    blob_of(trust->known, taken[0]));
	}
	for (uint32_t i = 0; i < trust->of_methods.n; i++, at += of_method) {
		const uint64_t *taken = trust->methods[i];

		stands &= or_forget(bytes && is_method(hotspot, taken, bytes + at),
				    method_of(trust->known, taken[0]));
	}
	return stands;
}
