/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata cache: methods of a virtual machine that earlier walks have read. A
 * walk uses cached entries without reading the machine's memory again. At its end the walk
 * reads all entries that it used, in one request to the kernel, and compares them. Cached entries
 * are thus revalidated before the sample is emitted. An entry that has changed is dropped, and the
 * thread is walked again. If the second walk fails in the same way, the third one uses no cache.
 *
 * Headers of code are read again each time, but names of their kinds are not.
 *
 * All threads share the cache without a lock. Two threads may write one entry at the same time; a
 * torn entry fails validation.
 */
#ifndef SF_FROZEN_HOTSPOT_METADATA_CACHE_H
#define SF_FROZEN_HOTSPOT_METADATA_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "frozen/hotspot/hotspot.h"

#define SF_KNOWN_METHODS 1024   /* a power of two */

/* The cache. All zeroes: empty. Ordinary code allocates and frees it. */
struct sf_known {
	_Atomic uint64_t methods[SF_KNOWN_METHODS][SF_METHOD_WORDS];   /* by their address */
	struct sf_hotspot_names names;
};

#define SF_CACHED_METADATA 64          /* methods that one walk may take */
#define SF_METADATA_CACHE_MARKS 256
#define SF_METADATA_CACHE_BYTES (SF_CACHED_METADATA * (sizeof(uint64_t) + SF_HOTSPOT_MAX_CONST))

/* The entries that one walk used. One walk at a time. */
struct sf_metadata_cache {
	struct sf_known *known;        /* the cache, not owned; NULL: neither used nor filled */
	bool is_over;                  /* no further entry is used, but the cache is still filled */
	uint32_t n;
	uint8_t marks[SF_METADATA_CACHE_MARKS]; /* the index + 1 of each, by its address */
	uint64_t methods[SF_CACHED_METADATA][SF_METHOD_WORDS];
	struct iovec pieces[2 * SF_CACHED_METADATA];
};

/* A walk begins. Signal-safe, as the rest is. */
void sf_metadata_cache_begin(struct sf_metadata_cache *trust);
/* The walk begins again, and uses no cached entry. */
void sf_metadata_cache_end(struct sf_metadata_cache *trust);

/* From the cache, else as sf_hotspot_blob and sf_hotspot_method. `trust` NULL: there is no cache. */
bool sf_metadata_cache_blob(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		   const struct sf_reader *memory, uint64_t pc, struct sf_blob *ret);
bool sf_metadata_cache_method(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const struct sf_reader *memory, uint64_t address, struct sf_method *ret);

/* Fills `pieces` with the memory to read for the revalidation; returns their number. 0: no entry was used. */
unsigned sf_metadata_cache_pieces(struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
			 size_t *size_ret);
/*
 * Whether all used entries equal `bytes`, the contents of the pieces one after the other (NULL: not
 * all pieces could be read). Drops the entries that differ from the cache.
 */
bool sf_metadata_cache_stands(const struct sf_metadata_cache *trust, const struct sf_hotspot *hotspot,
		     const uint8_t *bytes);

#endif
