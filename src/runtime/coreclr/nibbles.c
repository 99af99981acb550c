/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks numbers from nibbles. */
#include "runtime/coreclr/nibbles.h"

#define MAX_NIBBLES 11u   /* of a number of 32 bits */
#define HANDLE_NIBBLES 16u

static unsigned take(struct sf_clr_nibbles *nibbles)
{
	if (nibbles->has_half) {
		nibbles->has_half = false;
		return nibbles->byte >> 4;
	}
	nibbles->byte = sf_bytes_u8(&nibbles->bytes);
	nibbles->has_half = true;
	return nibbles->byte & 15;
}

uint32_t sf_clr_nibbles_number(struct sf_clr_nibbles *nibbles)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < MAX_NIBBLES; i++) {
		const unsigned nibble = take(nibbles);

		number = number << 3 | (nibble & 7);
		if (!(nibble & 8))
			return number;
	}
	nibbles->bytes.bad = true;
	return 0;
}

uint32_t sf_clr_nibbles_from(struct sf_clr_nibbles *nibbles, uint32_t last)
{
	const uint32_t number = sf_clr_nibbles_number(nibbles);

	return number & 1 ? last - (number >> 1) : last + (number >> 1);
}

uint64_t sf_clr_nibbles_handle(struct sf_clr_nibbles *nibbles)
{
	uint64_t handle = 0;

	for (unsigned i = 0; i < HANDLE_NIBBLES; i++)
		handle |= (uint64_t)take(nibbles) << 4 * i;
	return handle;
}
