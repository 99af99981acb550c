/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of one executable segment of a file, and what a few of its instructions show of where functions begin and
 * end. For src/symbols only. x86-64 only: other code is none.
 */
#ifndef SF_SYMBOLS_CODE_SEGMENT_H
#define SF_SYMBOLS_CODE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/file.h"
#include "frozen/code_x86_64.h"

/* `bytes` are the file's, and live as long as it is open. */
struct sf_code_segment {
	uint64_t base, size; /* addresses of the file */
	const uint8_t *bytes;
};

/* The segment that holds `address`. False, and an empty one, where there is none. */
bool sf_code_segment_read(struct sf_code_segment *ret, const struct sf_elf *elf, uint64_t address);

bool sf_code_segment_has(const struct sf_code_segment *code, uint64_t address);

/* False also outside the segment, and where the instruction is not known. */
bool sf_code_segment_decode(const struct sf_code_segment *code, uint64_t address, struct sf_x86_instruction *ret);

/*
 * Whether the code at `from` goes on to `to`, instruction by instruction, with no return or jump before it: then both
 * are in one function. False also where an instruction is not known, or `to` is far.
 */
bool sf_code_goes_on(const struct sf_code_segment *code, uint64_t from, uint64_t to);

/*
 * Whether the function at `from` is seen to end before `to`: at a return or a jump behind which none of its own jumps
 * leads. True also where no function is so long. False where an instruction is not known.
 */
bool sf_code_ends_before(const struct sf_code_segment *code, uint64_t from, uint64_t to);

/*
 * The start of the function at `address` as linkers and compilers align functions: behind int3 instructions, or where a
 * frame pointer is set up. 0: it is not seen, or that function ends before `address`.
 */
uint64_t sf_code_start_by_padding(const struct sf_code_segment *code, uint64_t address);

#endif
