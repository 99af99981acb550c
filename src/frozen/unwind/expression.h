/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounded evaluator for DWARF expressions in unwind rules (DWARF 5, section 2.5; the
 * operations that section 6.4.2 allows in call frame information).
 *
 * At most 256 operations and a stack of 32 values; division by zero, a read that fails, a
 * register that is not known and anything else that is wrong is an end, not a guess.
 */
#ifndef SF_FROZEN_UNWIND_EXPRESSION_H
#define SF_FROZEN_UNWIND_EXPRESSION_H

#include "frozen/arch.h"
#include "frozen/ends.h"
#include "frozen/reader.h"

struct sf_expression {
	const uint8_t *bytes;
	size_t size;
	bool has_initial;   /* register rules start with the CFA on the stack; a CFA rule does
			     * not */
	uint64_t initial;
};

/*
 * True and the value in `ret`; else false and why in `why`: SF_END_EXPRESSION, SF_END_MEMORY,
 * SF_END_COPY or SF_END_REGISTER. Signal-safe.
 */
bool sf_expression_eval(const struct sf_expression *expression, const struct sf_regs *regs,
			const struct sf_reader *reader, uint64_t *ret, enum sf_end *why);

#endif
