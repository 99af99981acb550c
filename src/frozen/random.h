/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for jitter and draws: xorshift64* (Vigna 2016). Not for secrets. Signal-safe. */
#ifndef SF_FROZEN_RANDOM_H
#define SF_FROZEN_RANDOM_H

#include <stdint.h>

/* The next number of a generator whose state is not 0. */
static inline uint64_t sf_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
