/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's compressed numbers, in the target's memory: up to five bytes, the lowest first, each
 * with six bits when another follows. From JDK 20 on no byte is 0 (HotSpot:
 * utilities/unsigned5.hpp).
 */
#ifndef SF_RUNTIME_HOTSPOT_UNSIGNED5_H
#define SF_RUNTIME_HOTSPOT_UNSIGNED5_H

#include "frozen/hotspot/hotspot.h"

#define SF_UNSIGNED5_PIECE 64    /* is read at once, aligned: it is on one page */

struct sf_unsigned5 {
	const struct sf_reader *memory;
	uint64_t address;            /* of the next byte that is not in `bytes` */
	uint8_t bytes[SF_UNSIGNED5_PIECE];
	unsigned at, n;
	uint8_t excluded;
};

/* `memory` must outlive it. */
void sf_unsigned5_start(struct sf_unsigned5 *in, const struct sf_hotspot *hotspot,
			const struct sf_reader *memory, uint64_t address);
bool sf_unsigned5_byte(struct sf_unsigned5 *in, uint8_t *ret);   /* false: cannot be read */
bool sf_unsigned5_next(struct sf_unsigned5 *in, uint32_t *ret);
/* How many bytes from there on are read when the first `n` are taken. */
size_t sf_unsigned5_reads(uint64_t address, size_t n);

#endif
