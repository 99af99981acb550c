/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions begin and end by what unwinders know of them, for code whose symbols were
 * stripped: call frame information is loaded with the program and stays. For src/symbols only.
 *
 * A function that the compiler split has a range per part.
 */
#ifndef SF_SYMBOLS_FUNCTION_RANGES_H
#define SF_SYMBOLS_FUNCTION_RANGES_H

#include "base/vec.h"
#include "elf/file.h"

struct sf_function_range {
	uint64_t start, end;
};

struct sf_function_ranges {
	SF_VEC(struct sf_function_range) items; /* sorted by start */
};

/* Reads .eh_frame and .debug_frame into *ret, which is zeroed. False when memory ran out. */
bool sf_function_ranges_read(struct sf_elf *elf, struct sf_function_ranges *ret);

/* The range around `address`, or NULL. */
const struct sf_function_range *sf_function_ranges_find(const struct sf_function_ranges *ranges,
							uint64_t address);

void sf_function_ranges_deinit(struct sf_function_ranges *ranges);

#endif
