/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods that the JIT inlined at an offset in its code. CoreCLR keeps them where the program was started with
 * DOTNET_RichDebugInfo=1 (src/coreclr/vm/debuginfostore.cpp in dotnet/runtime: rich debug information): a tree of the
 * inlined calls, and a map from offsets to the nodes of the tree. Ordinary code; everything that is read is hostile
 * input.
 */
#ifndef SF_RUNTIME_CORECLR_INLINED_H
#define SF_RUNTIME_CORECLR_INLINED_H

#include "runtime/coreclr/description.h"

#define SF_CLR_MAX_INLINED 64u

struct sf_clr_inlined {
	uint64_t method;    /* MethodDesc */
	uint32_t il;        /* offset in its IL, or SF_CLR_NO_IL */
};

#define SF_CLR_NO_IL UINT32_MAX

/*
 * The methods at an offset in jitted code with this RealCodeHeader, innermost first; the last one is the method whose
 * code it is. 0: nothing was recorded, or it makes no sense, or there are more than SF_CLR_MAX_INLINED.
 */
size_t sf_clr_inlined_at(const struct sf_clr_description *description, const struct sf_reader *memory,
			 uint64_t header, uint32_t native, struct sf_clr_inlined ret[SF_CLR_MAX_INLINED]);

/* The same from the bytes of the tree and the map. */
size_t sf_clr_find_inlined(const uint8_t *bytes, size_t size, uint32_t native,
			   struct sf_clr_inlined ret[SF_CLR_MAX_INLINED]);

#endif
