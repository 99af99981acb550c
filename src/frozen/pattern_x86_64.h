/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 code that is recognised by its bytes. Signal-safe. */
#ifndef SF_FROZEN_PATTERN_X86_64_H
#define SF_FROZEN_PATTERN_X86_64_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/reader.h"

/* `second` is where the second instruction starts. */
struct sf_x86_pattern {
	uint8_t size, second;
	uint8_t bytes[9];
};

static const struct sf_x86_pattern sf_x86_endbr = { 4, 0, { 0xf3, 0x0f, 0x1e, 0xfa } };

/* Whether the code at `addr` has these bytes. */
static inline bool sf_x86_matches(const struct sf_reader *reader, uint64_t addr, const struct sf_x86_pattern *pattern)
{
	uint8_t bytes[sizeof(pattern->bytes)];
	uint8_t difference = 0;

	if (!sf_read(reader, bytes, addr, pattern->size))
		return false;
	for (unsigned i = 0; i < pattern->size; i++)
		difference |= bytes[i] ^ pattern->bytes[i];
	return difference == 0;
}

#endif
