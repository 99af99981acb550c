/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prologues of native code on x86-64, as compilers make them: push %rbp; mov %rsp, %rbp; then pushes and a sub. The
 * instructions show how many bytes the function takes from sp. Signal-safe.
 */
#include "frozen/prologue_x86_64.h"

#include <string.h>

#include "frozen/pattern_x86_64.h"

#include "frozen/frozen.h"

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
