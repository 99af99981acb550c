/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluator for DWARF expressions: a stack machine, one function per kind of operation, in a
 * table by opcode. Signal-safe. Operations that section 6.4.2.1 of DWARF 5 does not allow in call
 * frame information are not in the table; they end the evaluation.
 *
 * DW_OP_addr gives the address as it stands in the file. No compiler is known to use it in
 * unwind rules of code that can be moved.
 */
#include <stddef.h>

#include "frozen/unwind/expression.h"

#include "frozen/frozen.h"

#define MAX_OPERATIONS 256
#define MAX_VALUES 32

struct machine {
	const struct sf_expression *expression;
	const struct sf_regs *regs;
	const struct sf_reader *reader;
	size_t position;        /* of the next byte */
	unsigned n_values;
	uint64_t values[MAX_VALUES];
	enum sf_end why;        /* SF_END_EXPRESSION until something else is found */
};

/* Opcodes, DWARF 5, table 7.9. */
enum {
	OP_ADDR = 0x03, OP_DEREF = 0x06,
	OP_CONST1U = 0x08, OP_CONST1S, OP_CONST2U, OP_CONST2S, OP_CONST4U, OP_CONST4S, OP_CONST8U,
	OP_CONST8S, OP_CONSTU, OP_CONSTS,
	OP_DUP, OP_DROP, OP_OVER, OP_PICK, OP_SWAP, OP_ROT,
	OP_ABS = 0x19, OP_AND, OP_DIV, OP_MINUS, OP_MOD, OP_MUL, OP_NEG, OP_NOT, OP_OR, OP_PLUS,
	OP_PLUS_UCONST, OP_SHL, OP_SHR, OP_SHRA, OP_XOR, OP_BRA,
	OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT, OP_NE, OP_SKIP,
	OP_LIT0 = 0x30, OP_LIT31 = 0x4f, OP_BREG0 = 0x70, OP_BREG31 = 0x8f,
	OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96,
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->n_values == MAX_VALUES)
		return false;
	m->values[m->n_values++] = value;
	return true;
}

static bool pop(struct machine *m, uint64_t *ret)
{
	if (m->n_values == 0)
		return false;
	*ret = m->values[--m->n_values];
	return true;
}

/* `size` bytes of the expression, little-endian, at most 8. */
static bool take_bytes(struct machine *m, unsigned size, uint64_t *ret)
{
	uint64_t value = 0;

	if (m->expression->size - m->position < size)
		return false;
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)m->expression->bytes[m->position++] << (8 * i);
	*ret = value;
	return true;
}

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
	const uint64_t sign = UINT64_C(1) << (bits - 1);

	return bits < 64 ? (value ^ sign) - sign : value;
}

/* A LEB128 number; more than 64 bits of it are a mistake. */
static bool take_leb128(struct machine *m, bool is_signed, uint64_t *ret)
{
	uint64_t value = 0, byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!take_bytes(m, 1, &byte))
			return false;
		value |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret = is_signed && shift + 7 < 64 ? sign_extend(value, shift + 7) : value;
		return true;
	}
	return false;
}

static bool do_literal(struct machine *m, uint8_t op)
{
	return push(m, op - OP_LIT0);
}

static bool do_address(struct machine *m, uint8_t op)
{
	uint64_t value;
	(void)op;

	return take_bytes(m, 8, &value) && push(m, value);
}

/* The eight fixed sizes come in pairs, unsigned and signed, of 1, 2, 4 and 8 bytes. */
static bool do_const(struct machine *m, uint8_t op)
{
	const unsigned size = 1u << ((op - OP_CONST1U) / 2);
	const bool is_signed = (op - OP_CONST1U) % 2;
	uint64_t value;

	return take_bytes(m, size, &value) &&
	       push(m, is_signed ? sign_extend(value, 8 * size) : value);
}

static bool do_const_leb128(struct machine *m, uint8_t op)
{
	uint64_t value;

	return take_leb128(m, op == OP_CONSTS, &value) && push(m, value);
}

static bool push_register(struct machine *m, uint64_t reg, uint64_t offset)
{
	if (reg >= SF_MAX_REGS)
		return false;
	if (!sf_reg_known(m->regs, (unsigned)reg)) {
		m->why = SF_END_REGISTER;
		return false;
	}
	return push(m, m->regs->r[reg] + offset);
}

static bool do_breg(struct machine *m, uint8_t op)
{
	uint64_t offset;

	return take_leb128(m, true, &offset) && push_register(m, op - OP_BREG0, offset);
}

static bool do_bregx(struct machine *m, uint8_t op)
{
	uint64_t reg, offset;
	(void)op;

	return take_leb128(m, false, &reg) && take_leb128(m, true, &offset) &&
	       push_register(m, reg, offset);
}

static bool do_drop(struct machine *m, uint8_t op)
{
	uint64_t value;
	(void)op;

	return pop(m, &value);
}

/* Pushes a copy of the value that is `index` below the top. */
static bool copy_value(struct machine *m, uint64_t index)
{
	return index < m->n_values && push(m, m->values[m->n_values - 1 - index]);
}

static bool do_dup(struct machine *m, uint8_t op)
{
	return copy_value(m, op == OP_OVER);
}

static bool do_pick(struct machine *m, uint8_t op)
{
	uint64_t index;
	(void)op;

	return take_bytes(m, 1, &index) && copy_value(m, index);
}

static bool do_swap(struct machine *m, uint8_t op)
{
	uint64_t top, second;
	(void)op;

	return pop(m, &top) && pop(m, &second) && push(m, top) && push(m, second);
}

/* The top becomes the third; the second and third move up. */
static bool do_rot(struct machine *m, uint8_t op)
{
	uint64_t top, second, third;
	(void)op;

	return pop(m, &top) && pop(m, &second) && pop(m, &third) && push(m, top) &&
	       push(m, third) && push(m, second);
}

static bool push_memory(struct machine *m, uint64_t addr, size_t size)
{
	uint64_t value = 0; /* both architectures are little-endian, so fewer bytes fill it too */

	if (!sf_read(m->reader, &value, addr, size)) {
		m->why = sf_why_unread(m->reader, addr, size);
		return false;
	}
	return push(m, value);
}

static bool do_deref(struct machine *m, uint8_t op)
{
	uint64_t size = 8, addr;

	if (op == OP_DEREF_SIZE && !take_bytes(m, 1, &size))
		return false;
	return size >= 1 && size <= 8 && pop(m, &addr) && push_memory(m, addr, size);
}

static bool do_unary(struct machine *m, uint8_t op)
{
	uint64_t a;

	if (!pop(m, &a))
		return false;
	if (op == OP_NOT)
		return push(m, ~a);
	return push(m, op == OP_NEG || (int64_t)a < 0 ? 0 - a : a);
}

/* Signed, and dividing the smallest number by -1 wraps where the processor would trap. */
static uint64_t divide(uint64_t a, uint64_t b)
{
	return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shift_right_signed(uint64_t a, uint64_t b)
{
	return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
}

static bool do_binary(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	if (!pop(m, &b) || !pop(m, &a))
		return false;
	switch (op) {
	case OP_AND: return push(m, a & b);
	case OP_OR: return push(m, a | b);
	case OP_XOR: return push(m, a ^ b);
	case OP_PLUS: return push(m, a + b);
	case OP_MINUS: return push(m, a - b);
	case OP_MUL: return push(m, a * b);
	case OP_DIV: return b != 0 && push(m, divide(a, b));
	case OP_MOD: return b != 0 && push(m, a % b);
	case OP_SHL: return push(m, b < 64 ? a << b : 0);
	case OP_SHR: return push(m, b < 64 ? a >> b : 0);
	case OP_SHRA: return push(m, shift_right_signed(a, b));
	case OP_EQ: return push(m, a == b);
	case OP_NE: return push(m, a != b);
	case OP_GE: return push(m, (int64_t)a >= (int64_t)b);
	case OP_GT: return push(m, (int64_t)a > (int64_t)b);
	case OP_LE: return push(m, (int64_t)a <= (int64_t)b);
	case OP_LT: return push(m, (int64_t)a < (int64_t)b);
	}
	return false;
}

static bool do_plus_uconst(struct machine *m, uint8_t op)
{
	uint64_t a, b;
	(void)op;

	return pop(m, &a) && take_leb128(m, false, &b) && push(m, a + b);
}

/* Jumps count from behind their operand; the end of the expression is a place to go to. */
static bool do_jump(struct machine *m, uint8_t op)
{
	uint64_t distance, condition = 1, target;

	if (!take_bytes(m, 2, &distance) || (op == OP_BRA && !pop(m, &condition)))
		return false;
	if (condition == 0)
		return true;
	target = m->position + sign_extend(distance, 16);
	if (target > m->expression->size)
		return false;
	m->position = target;
	return true;
}

static bool do_nop(struct machine *m, uint8_t op)
{
	(void)m;
	return op == OP_NOP;
}

static bool (*const operations[256])(struct machine *m, uint8_t op) = {
	[OP_ADDR] = do_address,
	[OP_DEREF] = do_deref,
	[OP_CONST1U ... OP_CONST8S] = do_const,
	[OP_CONSTU ... OP_CONSTS] = do_const_leb128,
	[OP_DUP] = do_dup,
	[OP_DROP] = do_drop,
	[OP_OVER] = do_dup,
	[OP_PICK] = do_pick,
	[OP_SWAP] = do_swap,
	[OP_ROT] = do_rot,
	[OP_ABS] = do_unary,
	[OP_AND ... OP_MUL] = do_binary,
	[OP_NEG ... OP_NOT] = do_unary,
	[OP_OR ... OP_PLUS] = do_binary,
	[OP_PLUS_UCONST] = do_plus_uconst,
	[OP_SHL ... OP_XOR] = do_binary,
	[OP_BRA] = do_jump,
	[OP_EQ ... OP_NE] = do_binary,
	[OP_SKIP] = do_jump,
	[OP_LIT0 ... OP_LIT31] = do_literal,
	[OP_BREG0 ... OP_BREG31] = do_breg,
	[OP_BREGX] = do_bregx,
	[OP_DEREF_SIZE] = do_deref,
	[OP_NOP] = do_nop,
};

/* Runs to the end of the expression, which must be reached within the bound. */
static bool run(struct machine *m)
{
	for (unsigned i = 0; m->position < m->expression->size; i++) {
		const uint8_t op = m->expression->bytes[m->position++];

		if (i == MAX_OPERATIONS || !operations[op] || !operations[op](m, op))
			return false;
	}
	return true;
}

bool sf_expression_eval(const struct sf_expression *expression, const struct sf_regs *regs,
			const struct sf_reader *reader, uint64_t *ret, enum sf_end *why)
{
	struct machine m; /* field by field: the values need no zeros */

	m.expression = expression;
	m.regs = regs;
	m.reader = reader;
	m.position = 0;
	m.n_values = 0;
	m.why = SF_END_EXPRESSION;
	if (expression->has_initial)
		m.values[m.n_values++] = expression->initial;
	if (!run(&m) || !pop(&m, ret)) {
		*why = m.why;
		return false;
	}
	return true;
}
