/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of any bytes over a small memory. The first byte chooses whether a value is on
 * the stack at first; the rest is the expression.
 */
#include <stdint.h>
#include <stdlib.h>

#include "frozen/unwind/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t memory[8] = { 0x1000, 0x1010, UINT64_MAX, 0, 1, 0x8000000000000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sf_reader reader = {
		.window = (const uint8_t *)memory,
		.window_start = 0x1000,
		.window_size = sizeof(memory),
		.stack_end = 0x2000,
	};
	struct sf_regs regs = { .known = 0xffff };
	struct sf_expression expression = { .initial = 0x1000 };
	enum sf_end why = SF_N_ENDS;
	uint64_t value;

	if (size == 0)
		return 0;
	for (unsigned i = 0; i < 16; i++)
		regs.r[i] = 0x1000 + 8 * i;
	expression.has_initial = data[0] & 1;
	expression.bytes = data + 1;
	expression.size = size - 1;
	if (!sf_expression_eval(&expression, &regs, &reader, &value, &why) && why != SF_END_EXPRESSION &&
	    why != SF_END_MEMORY && why != SF_END_COPY && why != SF_END_REGISTER)
		abort();
	return 0;
}
