/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR's debug information: which offset in a method's IL belongs to an offset in its code
 * (src/coreclr/vm/debuginfostore.cpp in dotnet/runtime). No descriptor of .NET 8 to 10 says where it is and how it is
 * packed, so what is read is checked, and dropped if it makes no sense. Ordinary code.
 */
#ifndef SF_RUNTIME_CORECLR_DEBUG_INFO_H
#define SF_RUNTIME_CORECLR_DEBUG_INFO_H

#include "frozen/coreclr/code.h"
#include "frozen/memory/bytes.h"
#include "runtime/coreclr/description.h"

/* The IL offset of the statement at an offset in jitted code with this RealCodeHeader; false: not known. */
bool sf_clr_jitted_il(const struct sf_clr_description *description, const struct sf_reader *memory,
		      uint64_t header, uint32_t native, uint32_t *ret);

/* The same in a precompiled image; `function`: the index of the method's first function. */
bool sf_clr_precompiled_il(const struct sf_clr_description *description, const struct sf_reader *memory,
			   const struct sf_clr_range *range, uint32_t function, uint32_t native,
			   uint32_t *ret);

/* Where the process has the rich debug information of jitted code (inlined.h); false: there is none. */
bool sf_clr_rich_info(const struct sf_clr_description *description, const struct sf_reader *memory, uint64_t header,
		      uint64_t *at_ret, uint32_t *size_ret);

/* From the bytes of a blob. `is_jitted`: it has flags, which may announce more. */
bool sf_clr_find_il(const struct sf_clr_description *description, const uint8_t *blob, size_t size, bool is_jitted,
		    uint32_t native, uint32_t *ret);

/*
 * Numbers as CoreCLR packs them in its debug information (src/coreclr/inc/nibblestream.h in dotnet/runtime): three bits
 * in each nibble, the highest first; bit 3 of a nibble says that more follow. The low nibble of a byte is first. A
 * number that is not there or has too many nibbles is 0, and marks `bytes` bad.
 */
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
