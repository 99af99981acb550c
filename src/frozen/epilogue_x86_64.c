/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the instructions of an epilogue: what takes the frame down, pops, and a return or a jump to another function.
 * Signal-safe.
 */
#include "frozen/epilogue_x86_64.h"

#include <string.h>

#include "frozen/arch.h"
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

#define RBP 6
#define RSP 7
#define WORD 8
#define MAX_EPILOGUE 64    /* bytes of code: add, vzeroupper, eight pops, jump */

struct epilogue {
	const struct sf_reader *memory;
	struct sf_regs regs;
	uint8_t bytes[MAX_EPILOGUE];
	size_t n, at;
};

static size_t left(const struct epilogue *step)
{
	return step->n - step->at;
}

static bool starts(const struct epilogue *step, const char *bytes, size_t n)
{
	if (left(step) < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (step->bytes[step->at + i] != (uint8_t)bytes[i])
			return false;
	}
	return true;
}

static uint64_t number(const struct epilogue *step, size_t at, size_t size)
{
	int8_t small;
	int32_t large;

	if (size == 1) {
		memcpy(&small, step->bytes + step->at + at, size);
		return (uint64_t)(int64_t)small;
	}
	memcpy(&large, step->bytes + step->at + at, sizeof(large));
	return (uint64_t)(int64_t)large;
}

/* The instruction that takes the frame down: add n, %rsp, or lea n(%rbp), %rsp. */
static const struct form {
	char bytes[3];
	uint8_t size;        /* of n */
	bool from_fp;
} forms[] = {
	{ { '\x48', '\x83', '\xc4' }, 1, false },
	{ { '\x48', '\x81', '\xc4' }, 4, false },
	{ { '\x48', '\x8d', '\x65' }, 1, true },
	{ { '\x48', '\x8d', '\xa5' }, 4, true },
};

static bool follow_frame(struct epilogue *step)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form *form = &forms[i];

		if (!starts(step, form->bytes, 3) || left(step) < 3u + form->size)
			continue;
		if (form->from_fp && !sf_reg_known(&step->regs, RBP))
			return false;
		sf_reg_set(&step->regs, RSP, step->regs.r[form->from_fp ? RBP : RSP] + number(step, 3, form->size));
		step->at += 3u + form->size;
		return true;
	}
	return true;
}

static bool pop(struct epilogue *step, unsigned reg)
{
	uint64_t value;

	if (reg == RSP || !sf_read_u64(step->memory, step->regs.r[RSP], &value))
		return false;
	step->regs.r[RSP] += WORD;
	sf_reg_set(&step->regs, reg, value);
	return true;
}

static bool follow_pops(struct epilogue *step)
{
	for (;;) {
		const uint8_t *at = step->bytes + step->at;
		unsigned reg;

		if (left(step) >= 1 && (at[0] & 0xf8) == 0x58) {
			reg = at[0] & 7;
			step->at += 1;
		} else if (left(step) >= 2 && at[0] == 0x41 && (at[1] & 0xf8) == 0x58) {
			reg = 8 + (at[1] & 7);
			step->at += 2;
		} else {
			return true;
		}
		if (!pop(step, sf_x86_dwarf(reg)))
			return false;
	}
}

/* A return, or a jump that leaves the function. */
static bool is_exit(const struct epilogue *step, uint64_t start, uint64_t end)
{
	const uint64_t pc = step->regs.pc + step->at;
	uint64_t target;

	if (starts(step, "\xc3", 1) || starts(step, "\xc2", 1) || starts(step, "\xf3\xc3", 2) || starts(step, "\xff\x25", 2))
		return true;
	/* jmp *reg and jmp *mem: FF /4. A prefix REX.W, which it does not need, marks it as the end of an epilogue. */
	if (left(step) >= 3 && (step->bytes[step->at] & 0xf8) == 0x48 && step->bytes[step->at + 1] == 0xff)
		return (step->bytes[step->at + 2] >> 3 & 7) == 4;
	if (starts(step, "\xe9", 1) && left(step) >= 5)
		target = pc + 5 + number(step, 1, 4);
	else if (starts(step, "\xeb", 1) && left(step) >= 2)
		target = pc + 2 + number(step, 1, 1);
	else
		return false;
	return target < start || target >= end;
}

bool sf_x86_follow_epilogue(const struct sf_reader *memory, uint64_t start, uint64_t end, struct sf_regs *regs)
{
	const struct sf_reader code = sf_reader_outside(memory);
	struct epilogue step = { .memory = memory, .regs = *regs };

	step.n = end - regs->pc < MAX_EPILOGUE ? end - regs->pc : MAX_EPILOGUE;
	if (!sf_read(&code, step.bytes, regs->pc, step.n) || !follow_frame(&step))
		return false;
	if (starts(&step, "\xc5\xf8\x77", 3)) /* vzeroupper */
		step.at += 3;
	if (!follow_pops(&step) || !is_exit(&step, start, end))
		return false;
	*regs = step.regs;
	return true;
}
