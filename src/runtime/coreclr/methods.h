/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of CoreCLR: what a MethodDesc says, and which one a piece of code belongs to. Ordinary code. */
#ifndef SF_RUNTIME_CORECLR_METHODS_H
#define SF_RUNTIME_CORECLR_METHODS_H

#include "runtime/coreclr/description.h"

/* MethodDesc.Flags & 7 (src/coreclr/vm/method.hpp: MethodClassification). */
enum sf_clr_method_kind {
	SF_CLR_METHOD_IL,
	SF_CLR_METHOD_FCALL,
	SF_CLR_METHOD_PINVOKE,
	SF_CLR_METHOD_RUNTIME,       /* made by the runtime: a delegate's Invoke */
	SF_CLR_METHOD_ARRAY,
	SF_CLR_METHOD_GENERIC,       /* an instance of a generic method */
	SF_CLR_METHOD_COM,
	SF_CLR_METHOD_DYNAMIC,       /* has a name of its own, and no metadata */
};

struct sf_clr_method {
	uint64_t desc, table, module;
	uint32_t row;                /* of the table MethodDef; 0: none */
	uint8_t kind;                /* enum sf_clr_method_kind */
	bool is_tiered;              /* it may be compiled again at a higher tier */
};

/* False: it cannot be read. */
bool sf_clr_read_method(const struct sf_clr_description *description, const struct sf_reader *memory,
			uint64_t desc, struct sf_clr_method *ret);

/* The MethodDesc of jitted code that begins at `start`; 0: it is not there any more. */
uint64_t sf_clr_jitted_method(const struct sf_clr_description *description,
			      const struct sf_reader *memory, uint64_t start);

/*
 * The MethodDesc of a precompiled function by its index, which is replaced by that of its method's first function; 0: the
 * runtime has none, or it cannot be read.
 */
uint64_t sf_clr_precompiled_method(const struct sf_clr_description *description,
				   const struct sf_reader *memory, const struct sf_clr_range *range,
				   uint32_t *function);

/* How code was compiled: NativeCodeVersion::OptimizationTier (src/coreclr/vm/codeversion.h). */
enum sf_clr_tier {
	SF_CLR_TIER_0,
	SF_CLR_TIER_1,
	SF_CLR_TIER_1_OSR,
	SF_CLR_TIER_OPTIMIZED,          /* once, fully: it is not tiered */
	SF_CLR_TIER_0_INSTRUMENTED,
	SF_CLR_TIER_1_INSTRUMENTED,
	SF_CLR_TIER_UNKNOWN,
};

/* The tier of a method's jitted code. */
enum sf_clr_tier sf_clr_tier_of(const struct sf_clr_description *description,
				const struct sf_reader *memory, const struct sf_clr_method *method,
				uint64_t start);

#endif
