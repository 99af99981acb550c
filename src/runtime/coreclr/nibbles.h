/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as CoreCLR packs them in its debug information (src/coreclr/inc/nibblestream.h in dotnet/runtime): three bits
 * in each nibble, the highest first; bit 3 of a nibble says that more follow. The low nibble of a byte is first. A
 * number that is not there or has too many nibbles is 0, and marks `bytes` bad.
 */
#ifndef SF_RUNTIME_CORECLR_NIBBLES_H
#define SF_RUNTIME_CORECLR_NIBBLES_H

#include "frozen/memory/bytes.h"

struct sf_clr_nibbles {
	struct sf_bytes bytes;   /* behind the last byte of which a nibble was taken */
	uint8_t byte;
	bool has_half;           /* the high nibble of `byte` is next */
};

uint32_t sf_clr_nibbles_number(struct sf_clr_nibbles *nibbles);

/* The number that is a signed difference from `last`: its lowest bit is the sign. */
uint32_t sf_clr_nibbles_from(struct sf_clr_nibbles *nibbles, uint32_t last);

/* A handle: 16 nibbles of four bits each, the lowest first. */
uint64_t sf_clr_nibbles_handle(struct sf_clr_nibbles *nibbles);

#endif
