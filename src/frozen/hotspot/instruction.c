/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an instruction in their order: prefixes, opcode, ModRM, SIB, displacement, immediate (Intel SDM, volume 2, 2.1). */
#include "frozen/hotspot/instruction.h"

#include <string.h>

#include "frozen/frozen.h"

#define NO_BASE 16

/* The kinds of operands behind an opcode. Bits: */
enum {
	M = 1,     /* ModRM */
	B = 2,     /* a byte of an immediate */
	W = 4,     /* a word of it: 16 bits */
	D = 8,     /* 32 bits of it; 16 with the prefix 66 */
	Q = 16,    /* as D, but 64 bits with REX.W */
	J = 32,    /* 32 bits in any case */
	A = 64,    /* an address of 64 bits */
	X = 128,   /* no instruction, or one that no such code has */
};

#define ARITHMETIC M, M, M, M, B, D, X, X
#define EIGHT(k) k, k, k, k, k, k, k, k

/* By opcode of one byte (SDM, table A-2). Prefixes are taken off before. */
static const uint8_t one_byte[256] = {
	ARITHMETIC, ARITHMETIC, ARITHMETIC, ARITHMETIC, ARITHMETIC, ARITHMETIC, ARITHMETIC, ARITHMETIC,
	EIGHT(X), EIGHT(X), EIGHT(0), EIGHT(0),
	X, X, X, M, X, X, X, X, D, M | D, B, M | B, 0, 0, 0, 0,
	EIGHT(B), EIGHT(B),
	M | B, M | D, X, M | B, M, M, M, M, EIGHT(M),
	EIGHT(0), 0, 0, X, 0, 0, 0, 0, 0,
	A, A, A, A, 0, 0, 0, 0, B, D, 0, 0, 0, 0, 0, 0,
	EIGHT(B), EIGHT(Q),
	M | B, M | B, W, 0, X, X, M | B, M | D, X, 0, X, X, 0, B, X, X,
	M, M, M, M, X, X, X, 0, EIGHT(M),
	B, B, B, B, B, B, B, B, J, J, X, B, 0, 0, 0, 0,
	X, 0, X, X, 0, 0, M, M, 0, 0, 0, 0, 0, 0, M, M,
};

/* The same behind 0f (SDM, table A-3). */
static const uint8_t two_bytes[256] = {
	M, M, M, M, X, 0, 0, 0, 0, 0, X, 0, X, M, X, X,
	EIGHT(M), EIGHT(M),
	M, M, M, M, X, X, X, X, EIGHT(M),
	0, 0, 0, 0, 0, 0, X, 0, EIGHT(X),
	EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M),
	M | B, M | B, M | B, M | B, M, M, M, 0, EIGHT(M),
	EIGHT(J), EIGHT(J), EIGHT(M), EIGHT(M),
	0, 0, 0, M, M | B, M, X, X, 0, 0, 0, M, M | B, M, M, M,
	EIGHT(M), M, M, M | B, M, M, M, M, M,
	M, M, M | B, M, M | B, M | B, M | B, M, EIGHT(0),
	EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M), EIGHT(M),
};

struct input {
	const uint8_t *at, *end;
	bool is_short;           /* the prefix 66 */
	uint8_t rex;             /* WRXB */
};

static bool take(struct input *input, uint8_t *ret)
{
	if (input->at >= input->end)
		return false;
	*ret = *input->at++;
	return true;
}

/* A little-endian number of 1, 2, 4 or 8 bytes, with its sign. */
static bool take_number(struct input *input, unsigned n, int64_t *ret)
{
	uint64_t value = 0;

	if ((size_t)(input->end - input->at) < n)
		return false;
	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)*input->at++ << 8 * i;
	*ret = n < 8 ? (int64_t)(value << (64 - 8 * n)) >> (64 - 8 * n) : (int64_t)value;
	return true;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0xf0 || byte == 0x2e || byte == 0x3e ||
	       byte == 0x64 || byte == 0x65;
}

/* VEX of two and three bytes, EVEX (SDM, 2.3.5 and 2.7.1): the map, and what REX would say; the opcode is next. */
static bool take_vector_prefix(struct input *input, uint8_t first, struct sf_instruction *ret)
{
	uint8_t a, skipped;

	if (!take(input, &a))
		return false;
	ret->is_vector = true;
	input->rex = (uint8_t)(~a >> 5 & (first == 0xc5 ? 4 : 7));
	ret->map = first == 0xc5 ? SF_MAP_0F : a & 7;
	for (unsigned i = 0; i < (first == 0x62 ? 2 : first == 0xc4 ? 1u : 0u); i++) {
		if (!take(input, &skipped))
			return false;
	}
	return ret->map >= SF_MAP_0F && ret->map <= SF_MAP_0F3A && take(input, &ret->opcode);
}

static bool take_opcode(struct input *input, struct sf_instruction *ret)
{
	uint8_t byte;

	do {
		if (!take(input, &byte))
			return false;
		input->is_short |= byte == 0x66;
	} while (is_prefix(byte));
	if (byte == 0xc5 || byte == 0xc4 || byte == 0x62)
		return take_vector_prefix(input, byte, ret);
	if ((byte & 0xf0) == 0x40) {
		input->rex = byte & 15;
		if (!take(input, &byte))
			return false;
	}
	ret->opcode = byte;
	if (byte != 0x0f)
		return true;
	if (!take(input, &ret->opcode))
		return false;
	ret->map = ret->opcode == 0x38 ? SF_MAP_0F38 : ret->opcode == 0x3a ? SF_MAP_0F3A : SF_MAP_0F;
	return ret->map == SF_MAP_0F || take(input, &ret->opcode);
}

static uint8_t operands_of(const struct sf_instruction *instruction)
{
	switch (instruction->map) {
	case SF_MAP_ONE:
		return one_byte[instruction->opcode];
	case SF_MAP_0F:
		return two_bytes[instruction->opcode];
	case SF_MAP_0F38:
		return M;
	default:
		return M | B;
	}
}

static bool take_modrm(struct input *input, struct sf_instruction *ret)
{
	uint8_t modrm, sib = 0;
	int64_t displacement = 0;
	unsigned n;

	if (!take(input, &modrm))
		return false;
	ret->has_modrm = true;
	ret->mod = modrm >> 6;
	ret->reg = (uint8_t)((modrm >> 3 & 7) | (input->rex & 4) << 1);
	ret->rm = (uint8_t)((modrm & 7) | (input->rex & 1) << 3);
	if (ret->mod == 3)
		return true;
	ret->base = ret->rm;
	if ((modrm & 7) == 4) {
		if (!take(input, &sib))
			return false;
		ret->base = (uint8_t)((sib & 7) | (input->rex & 1) << 3);
		ret->has_index = (sib >> 3 & 7) != 4 || (input->rex & 2);
	}
	n = ret->mod == 1 ? 1 : ret->mod == 2 ? 4 : 0;
	if (ret->mod == 0 && (ret->base & 7) == 5) {
		ret->base = NO_BASE;
		n = 4;
	}
	if (n && !take_number(input, n, &displacement))
		return false;
	ret->displacement = (int32_t)displacement;
	return true;
}

static unsigned immediate_size(const struct input *input, const struct sf_instruction *instruction, uint8_t operands)
{
	const unsigned usual = input->is_short && !(input->rex & 8) ? 2 : 4;
	/* test: the first two of the group have one (SDM, table A-6, group 3) */
	const bool is_test = instruction->map == SF_MAP_ONE && (instruction->opcode & 0xfe) == 0xf6 &&
			     (instruction->reg & 6) == 0;

	if (is_test)
		return instruction->opcode == 0xf6 ? 1 : usual;
	if (operands & Q)
		return input->rex & 8 ? 8 : usual;
	return operands & A ? 8 : operands & J ? 4 : operands & D ? usual : operands & W ? 2 : operands & B ? 1 : 0;
}

bool sf_instruction_decode(const uint8_t *code, size_t size, struct sf_instruction *ret)
{
	struct input input = { .at = code, .end = code + (size < SF_INSTRUCTION_SIZE ? size : SF_INSTRUCTION_SIZE) };
	uint8_t operands;
	unsigned n;

	*ret = (struct sf_instruction){ .base = NO_BASE };
	if (!take_opcode(&input, ret))
		return false;
	operands = operands_of(ret);
	ret->is_wide = (input.rex & 8) != 0;
	if ((operands & X) || ((operands & M) && !take_modrm(&input, ret)))
		return false;
	if (!ret->has_modrm)
		ret->rm = (uint8_t)((ret->opcode & 7) | (input.rex & 1) << 3);
	n = immediate_size(&input, ret, operands);
	if (n && !take_number(&input, n, &ret->immediate))
		return false;
	ret->size = (uint8_t)(input.at - code);
	return true;
}
