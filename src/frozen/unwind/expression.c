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

#include "frozen/memory/bytes.h"
#include "frozen/unwind/expression.h"

#include "frozen/frozen.h"

#define MAX_OPERATIONS 256
#define MAX_VALUES 32

struct machine {
	const struct sf_expression *expression;
	const struct sf_regs *regs;
	const struct sf_reader *reader;
	struct sf_bytes code;   /* what is left of the expression */
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

static bool do_literal(struct machine *m, uint8_t op)
{
	return push(m, op - OP_LIT0);
}

static bool do_address(struct machine *m, uint8_t op)
{
	(void)op;
	return push(m, sf_bytes_number(&m->code, 8));
}

/* The eight fixed sizes come in pairs, unsigned and signed, of 1, 2, 4 and 8 bytes. */
static bool do_const(struct machine *m, uint8_t op)
{
	const unsigned size = 1u << ((op - OP_CONST1U) / 2);
	const bool is_signed = (op - OP_CONST1U) % 2;
	const uint64_t value = sf_bytes_number(&m->code, size);

	return push(m, is_signed ? (uint64_t)sf_sign_extend(value, size) : value);
}

static bool do_const_leb128(struct machine *m, uint8_t op)
{
	return push(m, sf_bytes_leb(&m->code, op == OP_CONSTS));
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
	return push_register(m, op - OP_BREG0, sf_bytes_leb(&m->code, true));
}

static bool do_bregx(struct machine *m, uint8_t op)
{
	const uint64_t reg = sf_bytes_uleb(&m->code);
	(void)op;

	return push_register(m, reg, sf_bytes_leb(&m->code, true));
}

/* Operations that only move values: how many they take, and which of these they push, the top being 0. */
static const struct move {
	uint8_t n_taken, n_pushed, pushed[3];
} moves[] = {
	[OP_DUP] = { 1, 2, { 0, 0 } },
	[OP_DROP] = { 1, 0, { 0 } },
	[OP_OVER] = { 2, 3, { 1, 0, 1 } },
	[OP_SWAP] = { 2, 2, { 0, 1 } },
	[OP_ROT] = { 3, 3, { 0, 2, 1 } },
};

static bool do_move(struct machine *m, uint8_t op)
{
	const struct move *move = &moves[op];
	uint64_t taken[3];

	for (unsigned i = 0; i < move->n_taken; i++) {
		if (!pop(m, &taken[i]))
			return false;
	}
	for (unsigned i = 0; i < move->n_pushed; i++) {
		if (!push(m, taken[move->pushed[i]]))
			return false;
	}
	return true;
}

/* Pushes a copy of the value that is so far below the top. */
static bool do_pick(struct machine *m, uint8_t op)
{
	const uint8_t index = sf_bytes_u8(&m->code);
	(void)op;

	return index < m->n_values && push(m, m->values[m->n_values - 1 - index]);
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

	if (op == OP_DEREF_SIZE)
		size = sf_bytes_u8(&m->code);
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
	uint64_t a;
	(void)op;

	return pop(m, &a) && push(m, a + sf_bytes_uleb(&m->code));
}

/* Jumps count from behind their operand; the end of the expression is a place to go to. */
static bool do_jump(struct machine *m, uint8_t op)
{
	const int64_t distance = sf_sign_extend(sf_bytes_number(&m->code, 2), 2);
	const int64_t behind = m->code.at - m->expression->bytes;
	uint64_t condition = 1;

	if (op == OP_BRA && !pop(m, &condition))
		return false;
	if (condition == 0)
		return true;
	if (distance < -behind || distance > (int64_t)sf_bytes_left(&m->code))
		return false;
	m->code.at += distance;
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
	[OP_DUP] = do_move,
	[OP_DROP] = do_move,
	[OP_OVER] = do_move,
	[OP_PICK] = do_pick,
	[OP_SWAP] = do_move,
	[OP_ROT] = do_move,
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
	for (unsigned i = 0; sf_bytes_left(&m->code); i++) {
		const uint8_t op = sf_bytes_u8(&m->code);

		if (i == MAX_OPERATIONS || !operations[op] || !operations[op](m, op) || m->code.bad)
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
	m.code = sf_bytes_of(expression->bytes, expression->size);
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
