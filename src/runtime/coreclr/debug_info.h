/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR's debug information: which offset in a method's IL belongs to an offset in its code
 * (src/coreclr/vm/debuginfostore.cpp in dotnet/runtime). No descriptor of .NET 8 to 10 says where it is and how it is
 * packed, so what is read is checked, and dropped if it makes no sense. Ordinary code.
 */
#ifndef SF_RUNTIME_CORECLR_DEBUG_INFO_H
#define SF_RUNTIME_CORECLR_DEBUG_INFO_H

#include "frozen/coreclr/code.h"
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

#endif
