/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes HotSpot's compressed numbers in the target's memory. */
#include "runtime/hotspot/unsigned5.h"

#define FIRST_EXCLUDING 20   /* JDK */
#define CONTINUES 192
#define MAX_SHIFT 30

void sf_unsigned5_start(struct sf_unsigned5 *in, const struct sf_hotspot *hotspot,
			const struct sf_reader *memory, uint64_t address)
{
	*in = (struct sf_unsigned5){
		.memory = memory, .address = address, .excluded = hotspot->version >= FIRST_EXCLUDING,
	};
}

size_t sf_unsigned5_reads(uint64_t address, size_t n)
{
	return n + (SF_UNSIGNED5_PIECE - (address + n) % SF_UNSIGNED5_PIECE) % SF_UNSIGNED5_PIECE;
}

/* To the end of the piece. */
static bool refill(struct sf_unsigned5 *in)
{
	const unsigned n = (unsigned)sf_unsigned5_reads(in->address, 1);

	if (!sf_read(in->memory, in->bytes, in->address, n))
		return false;
	in->address += n;
	in->at = 0;
	in->n = n;
	return true;
}

bool sf_unsigned5_byte(struct sf_unsigned5 *in, uint8_t *ret)
{
	if (in->at == in->n && !refill(in))
		return false;
	*ret = in->bytes[in->at++];
	return true;
}

bool sf_unsigned5_next(struct sf_unsigned5 *in, uint32_t *ret)
{
	uint8_t byte;

	*ret = 0;
	for (unsigned shift = 0; shift < MAX_SHIFT; shift += 6) {
		if (!sf_unsigned5_byte(in, &byte) || byte < in->excluded)
			return false;
		*ret += (uint32_t)(byte - in->excluded) << shift;
		if (byte < CONTINUES)
			break;
	}
	return true;
}
