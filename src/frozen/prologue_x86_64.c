/* SPDX-License-Identifier: Apache-2.0 */
/* Prologues and epilogues on x86-64, in the forms in which compilers make them. Signal-safe. */
#include "frozen/arch_x86_64.h"

#include <string.h>

#include "frozen/code_x86_64.h"
#include "frozen/pattern_x86_64.h"

#include "frozen/frozen.h"

/*
 * --- prologues: push %rbp; mov %rsp, %rbp; then pushes and a sub ---
 *
 * The instructions show how many bytes the function takes from sp.
 */

#define PUSH_FP 0x55

/* mov %rsp, %rbp */
static const struct sf_x86_pattern frames_made[] = {
	{ 3, 0, { 0x48, 0x89, 0xe5 } },
	{ 3, 0, { 0x48, 0x8b, 0xec } },
};

#define MAX_PLAIN 12   /* bytes of the longest instruction that is recognised below */

/* The bytes of a ModRM byte and what belongs to it. */
static unsigned operand_size(const uint8_t *code)
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	const unsigned mode = code[0] >> 6, base = code[0] & 7;
	const bool has_sib = mode != 3 && base == 4;
	const bool has_no_base = mode == 0 && (base == 5 || (has_sib && (code[1] & 7) == 5));

	return 1 + has_sib + (has_no_base ? 4 : displacement[mode]);
}

/*
 * The bytes of an instruction as compilers put them between those that make a frame, or 0: mov,
 * xor, lea, and imul with a number, to a register that is not sp, or to memory.
 */
static unsigned plain_size(const uint8_t code[MAX_PLAIN])
{
	const unsigned rex = (code[0] & 0xf0) == 0x40;
	const uint8_t op = code[rex], *operand = code + rex + 1;
	const bool rm_is_sp =
		operand[0] >> 6 == 3 && (operand[0] & 7) == 4 && !(rex && code[0] & 1);
	const bool reg_is_sp = (operand[0] >> 3 & 7) == 4 && !(rex && code[0] & 4);

	switch (op) {
	case 0x89: case 0x31:                       /* mov, xor %reg, operand */
		return rm_is_sp ? 0 : rex + 1 + operand_size(operand);
	case 0x8b: case 0x33: case 0x8d:            /* mov, xor, lea operand, %reg */
		return reg_is_sp ? 0 : rex + 1 + operand_size(operand);
	case 0x69:                                  /* imul $imm32, operand, %reg */
		return reg_is_sp ? 0 : rex + 1 + operand_size(operand) + 4;
	case 0xc7:                                  /* mov $imm32, operand */
		return rm_is_sp || operand[0] >> 3 & 7 ? 0 : rex + 1 + operand_size(operand) + 4;
	default:
		return 0;
	}
}

/*
 * The bytes of an instruction as a function begins, or 0: pushes, others that leave sp alone
 * between them, then at most one sub. The bytes that they take from sp are added to *taken.
 */
static unsigned takes_from_sp(const uint8_t code[MAX_PLAIN], uint32_t *taken, bool *is_last)
{
	const bool has_prefix = code[0] == 0x41;
	const unsigned size = plain_size(code);
	uint32_t immediate;

	if ((code[has_prefix] & 0xf8) == 0x50) { /* push %reg */
		*taken += 8;
		return 1 + has_prefix;
	}
	if (size)
		return size;
	*is_last = true;
	if (code[0] != 0x48 || code[2] != 0xec)
		return 0;
	if (code[1] == 0x83 && code[3] < 0x80) { /* sub $imm8, %rsp */
		*taken += code[3];
		return 4;
	}
	memcpy(&immediate, code + 3, sizeof(immediate));
	if (code[1] != 0x81 || immediate > INT32_MAX) /* sub $imm32, %rsp */
		return 0;
	*taken += immediate;
	return 7;
}

/* The bytes that these instructions take from sp together, at least; *pc_ret moves behind them. */
static bool read_frame_size(const struct sf_reader *reader, uint64_t *pc_ret, uint32_t *size_ret)
{
	bool is_last = false;
	uint8_t code[MAX_PLAIN];

	*size_ret = 0;
	for (unsigned i = 0; i < 16 && !is_last; i++) {
		if (!sf_read(reader, code, *pc_ret, sizeof(code)))
			return false;
		*pc_ret += takes_from_sp(code, size_ret, &is_last);
	}
	return true;
}

#define MAX_BODY 16384

/*
 * Whether these bytes may be an instruction that takes more from sp: add, sub, and, mov, lea to it.
 * Looked for at any byte, so some are none; leave, pop and add $imm, %rsp only give back.
 */
static bool may_set_sp(const uint8_t code[3])
{
	const uint8_t rex = code[0], op = code[1], modrm = code[2];
	const bool rm_is_sp = (modrm & 0xc7) == 0xc4, reg_is_sp = (modrm & 0x38) == 0x20;

	switch (op) {
	case 0x01: case 0x29: case 0x21: case 0x89:
		return (rex & 0xfb) == 0x48 && rm_is_sp && !(op == 0x89 && modrm == 0xec);
	case 0x81: case 0x83:
		return rex == 0x48 && rm_is_sp && modrm != 0xc4;
	case 0x03: case 0x2b: case 0x23: case 0x8b: case 0x8d:
		return (rex & 0xfe) == 0x48 && reg_is_sp;
	default:
		return false;
	}
}

static bool sets_sp_between(const struct sf_reader *reader, uint64_t start, uint64_t end)
{
	uint8_t code[256];

	if (end < start || end - start > MAX_BODY)
		return true;
	for (uint64_t at = start; at < end; at += sizeof(code) - 2) {
		const size_t n = end - at < sizeof(code) ? end - at : sizeof(code);

		if (!sf_read(reader, code, at, n))
			return true;
		for (size_t i = 0; i + 3 <= n; i++) {
			if (may_set_sp(code + i))
				return true;
		}
	}
	return false;
}

/* The rows say that nothing takes from sp between the push and where the frame pointer is set. */
static bool makes_frame(const struct sf_reader *reader, uint64_t start, uint64_t framed)
{
	uint8_t push;

	if (framed < start + 1 + frames_made[0].size || !sf_read(reader, &push, start, 1) ||
	    push != PUSH_FP)
		return false;
	return sf_x86_matches(reader, framed - frames_made[0].size, &frames_made[0]) ||
	       sf_x86_matches(reader, framed - frames_made[1].size, &frames_made[1]);
}

bool sf_x86_prologue(const struct sf_reader *reader, uint64_t pushed, uint64_t framed, uint64_t pc, struct sf_prologue *ret)
{
	uint64_t body = framed;

	ret->start = pushed - 1;
	if (!makes_frame(reader, ret->start, framed))
		return false;
	if (sf_x86_matches(reader, ret->start - sf_x86_endbr.size, &sf_x86_endbr))
		ret->start -= sf_x86_endbr.size;
	ret->is_fixed = read_frame_size(reader, &body, &ret->size) &&
			!sets_sp_between(reader, body, pc);
	return true;
}

/* --- epilogues: what takes the frame down, pops, and a return or a jump to another function --- */

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
