/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A digest of bytes: BLAKE2b with 32 bytes of result and no key (RFC 7693). Nothing that is known finds other bytes with
 * the same digest. The code is here, and in no library, because the agent needs libc only.
 *
 * Signal-safe. A struct sf_digest belongs to its caller and needs no freeing.
 */
#ifndef SF_BASE_DIGEST_H
#define SF_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define SF_DIGEST_SIZE 32
#define SF_DIGEST_BLOCK 128

struct sf_digest {
	uint64_t state[8];
	uint64_t n_bytes[2];             /* taken in, low word first */
	size_t used;                     /* of the block */
	uint8_t block[SF_DIGEST_BLOCK];  /* the last bytes: what ends the input is treated differently */
};

void sf_digest_begin(struct sf_digest *digest);
void sf_digest_add(struct sf_digest *digest, const void *bytes, size_t size);
void sf_digest_end(struct sf_digest *digest, uint8_t ret[SF_DIGEST_SIZE]);

#endif
