/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of one executable segment of a file, what a few of its instructions show of where functions begin and end, and
 * starts of functions that neither a symbol nor call frame information names, from the code itself. For src/symbols only.
 *
 * The code is followed from where functions are known to begin: the file's entry, and targets of direct calls. A function is
 * what is reached from its start without passing another start. Code that is not reached, and all code of a segment that is too
 * large to be gone through, has the start that padding shows, or none: it may be data. x86-64 only.
 */
#ifndef SF_SYMBOLS_CODE_STARTS_H
#define SF_SYMBOLS_CODE_STARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/file.h"
#include "symbols/ranges.h"

/* `bytes` are the file's, and live as long as it is open. */
struct sf_code_segment {
	uint64_t base, size; /* addresses of the file */
	const uint8_t *bytes;
};

/* The segment that holds `address`. False, and an empty one, where there is none. */
bool sf_code_segment_read(struct sf_code_segment *ret, const struct sf_elf *elf, uint64_t address);

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

/* Zero it to begin. One executable segment. */
struct sf_code_starts {
	struct sf_code_segment code;
	uint8_t *reached;        /* a bit for each byte */
	SF_VEC(uint64_t) starts; /* sorted, each once */
	bool is_known;           /* the segment was gone through */
};

/*
 * Evidence for starts: functions with symbols, those with call frame information, and all addresses that are looked up. Such
 * an address may be of a frame that called: then the call that ends there shows a start.
 */
struct sf_known_code {
	const struct sf_ranges *symbols, *functions;
	const uint64_t *asked;
	size_t n_asked;
};

/* Finds the start of the function at `address`. *ret stays as it is where there is none. False when memory ran out. */
bool sf_code_starts_find(struct sf_code_starts *starts, const struct sf_elf *elf, const struct sf_known_code *known,
			 uint64_t address, uint64_t *ret);

void sf_code_starts_deinit(struct sf_code_starts *starts);

#endif
