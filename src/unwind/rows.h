/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in the making: takes functions (a range of addresses and the rows in it) from one source
 * after another, in any order, and packs them into the block of frozen/unwind/table.h.
 *
 * Within a source, where functions overlap the one that starts later wins: a bad entry that
 * claims the whole text costs nothing but itself. Between sources the earlier one wins. Gaps
 * get rows that say SF_RULES_NONE.
 */
#ifndef SF_UNWIND_ROWS_H
#define SF_UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/unwind/table.h"

struct sf_rows;

/*
 * Rows for addresses from `start` up to `end`, less than 4 GiB apart; what lies outside is not
 * taken. NULL when memory ran out.
 */
struct sf_rows *sf_rows_create(uint64_t start, uint64_t end);
void sf_rows_destroy(struct sf_rows *rows);

/* Rows of functions that begin in these `size` bytes have this flag (enum sf_rules_flags). */
void sf_rows_flag(struct sf_rows *rows, uint64_t start, uint64_t size, uint32_t flag);

/*
 * In rows of the function at `start` (0: none) the CFA is `by` bytes lower than it is said to be. For functions whose
 * rules save no registers.
 */
void sf_rows_lower(struct sf_rows *rows, uint64_t start, int32_t by);

/*
 * Starts a function; false if it is of no use (outside the range, empty, or in a function of an earlier
 * source), and then nothing more is to be said about it.
 */
bool sf_rows_begin(struct sf_rows *rows, uint64_t start, uint64_t end);

/* A row of that function, addresses ascending. False when memory ran out. */
bool sf_rows_add(struct sf_rows *rows, uint64_t address, const struct sf_rules *rules);

/* Ends the function: takes its rows, or forgets them. False when memory ran out. */
bool sf_rows_end(struct sf_rows *rows, bool keep);

/* Whether any function has rows. */
bool sf_rows_any(const struct sf_rows *rows);

/* Stores an expression for a rule, and returns its offset in the blob. False when memory ran out. */
bool sf_rows_expression(struct sf_rows *rows, const uint8_t *bytes, size_t size,
			int32_t *ret);

/* Ends a source: what it said is settled. False when memory ran out. */
bool sf_rows_settle(struct sf_rows *rows);

/*
 * The finished block, from mmap, for settled sources; `header` gives what is known about
 * the file, and the rest of it is filled in.
 */
bool sf_rows_pack(const struct sf_rows *rows, const struct sf_table_header *header, void **ret,
		  size_t *size_ret, struct sf_error *err);

/*
 * Computes the right value of a block's header.checksum: crc32 of the whole block, with 0 in the place of
 * the checksum. `size` is the block's, at least the header's.
 */
uint32_t sf_rows_checksum(const void *block, size_t size);

#endif
