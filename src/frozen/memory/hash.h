/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of `n_bits` bits, for tables that are indexed by an address. Near numbers get distant
 * hashes (Knuth, The Art of Computer Programming 3, 6.4: Fibonacci hashing). Signal-safe.
 */
#ifndef SF_FROZEN_MEMORY_HASH_H
#define SF_FROZEN_MEMORY_HASH_H

#include <stdint.h>

#define SF_GOLDEN UINT64_C(0x9e3779b97f4a7c15)   /* 2^64 divided by the golden ratio */

/* n_bits: 1 to 64. */
static inline uint64_t sf_hash(uint64_t number, unsigned n_bits)
{
	return number * SF_GOLDEN >> (64 - n_bits);
}

#endif
