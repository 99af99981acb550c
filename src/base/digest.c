/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes digests: BLAKE2b as specified by RFC 7693. Section 2.6 has the initial state, 2.7 the permutations,
 * 3.1 the mixing of four words, 3.2 the compression of a block, 3.3 the whole function.
 */
#include "base/digest.h"

#include <string.h>

#define ROUNDS 12

static const uint64_t initial[8] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* The order in which a round takes the words of a block; the last two rounds are the first two again. */
static const uint8_t orders[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static inline uint64_t turn_right(uint64_t word, unsigned bits)
{
	return word >> bits | word << (64 - bits);
}

static inline __attribute__((always_inline)) void mix(uint64_t v[16], unsigned a, unsigned b, unsigned c,
						      unsigned d, uint64_t x, uint64_t y)
{
	v[a] += v[b] + x;
	v[d] = turn_right(v[d] ^ v[a], 32);
	v[c] += v[d];
	v[b] = turn_right(v[b] ^ v[c], 24);
	v[a] += v[b] + y;
	v[d] = turn_right(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = turn_right(v[b] ^ v[c], 63);
}

static inline __attribute__((always_inline)) void do_round(uint64_t v[16], const uint64_t words[16],
							   const uint8_t order[16])
{
	mix(v, 0, 4, 8, 12, words[order[0]], words[order[1]]);
	mix(v, 1, 5, 9, 13, words[order[2]], words[order[3]]);
	mix(v, 2, 6, 10, 14, words[order[4]], words[order[5]]);
	mix(v, 3, 7, 11, 15, words[order[6]], words[order[7]]);
	mix(v, 0, 5, 10, 15, words[order[8]], words[order[9]]);
	mix(v, 1, 6, 11, 12, words[order[10]], words[order[11]]);
	mix(v, 2, 7, 8, 13, words[order[12]], words[order[13]]);
	mix(v, 3, 4, 9, 14, words[order[14]], words[order[15]]);
}

static uint64_t load_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* `size` bytes of the block are of the input, the rest is padding. */
static void compress(struct sf_digest *digest, const uint8_t *block, size_t size, uint64_t last)
{
	uint64_t v[16], words[16];

	digest->n_bytes[1] += __builtin_add_overflow(digest->n_bytes[0], size, &digest->n_bytes[0]);
	for (unsigned i = 0; i < 16; i++)
		words[i] = load_word(block + 8 * i);
	for (unsigned i = 0; i < 8; i++) {
		v[i] = digest->state[i];
		v[i + 8] = initial[i];
	}
	v[12] ^= digest->n_bytes[0];
	v[13] ^= digest->n_bytes[1];
	v[14] ^= last;
#pragma GCC unroll 12
	for (unsigned i = 0; i < ROUNDS; i++)
		do_round(v, words, orders[i % 10]);
	for (unsigned i = 0; i < 8; i++)
		digest->state[i] ^= v[i] ^ v[i + 8];
}

/* The parameter block says: 32 bytes of result, no key, one sequence. */
void sf_digest_begin(struct sf_digest *digest)
{
	*digest = (struct sf_digest){ 0 };
	for (unsigned i = 0; i < 8; i++)
		digest->state[i] = initial[i];
	digest->state[0] ^= 0x01010000 ^ SF_DIGEST_SIZE;
}

void sf_digest_add(struct sf_digest *digest, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size > 0) {
		size_t n = SF_DIGEST_BLOCK - digest->used;

		/* A full block waits for more: the last one is marked. */
		if (n == 0) {
			compress(digest, digest->block, SF_DIGEST_BLOCK, 0);
			digest->used = 0;
			continue;
		}
		if (digest->used == 0 && size > SF_DIGEST_BLOCK) {
			compress(digest, at, SF_DIGEST_BLOCK, 0);
			n = SF_DIGEST_BLOCK;
		} else {
			n = n < size ? n : size;
			memcpy(digest->block + digest->used, at, n);
			digest->used += n;
		}
		at += n;
		size -= n;
	}
}

void sf_digest_end(struct sf_digest *digest, uint8_t ret[SF_DIGEST_SIZE])
{
	memset(digest->block + digest->used, 0, SF_DIGEST_BLOCK - digest->used);
	compress(digest, digest->block, digest->used, UINT64_MAX);
	for (unsigned i = 0; i < SF_DIGEST_SIZE; i++)
		ret[i] = (uint8_t)(digest->state[i / 8] >> (8 * (i % 8)));
}
