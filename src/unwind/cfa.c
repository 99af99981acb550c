/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes programs of call frame instructions. A table says which operands an instruction has, and which
 * function performs it. Rules have the form in which an unwind table stores them. Rules for registers that
 * no walk needs are decoded and dropped. Every error ends the program, because a part of a function's rules
 * would be a guess.
 */
#include "unwind/cfi.h"

#include <dwarf.h>

/* Nested DW_CFA_remember_state: compilers use 1 or 2, hand-written code has shown 4. */
#define MAX_REMEMBERED 64

/*
 * AADWARF64, section 4.4.2; the first is not in elfutils 0.188's dwarf.h, and older ones call the
 * second one DW_CFA_GNU_window_save, which it is on SPARC.
 */
#define CFA_AARCH64_NEGATE_RA_STATE_WITH_PC 0x2c
#define CFA_AARCH64_NEGATE_RA_STATE 0x2d

struct machine {
	const struct sf_arch *arch;
	const struct sf_cie *cie;
	struct sf_rows *rows;
	const struct sf_cfa_state *initial; /* NULL while the initial instructions run */
	struct sf_bytes code;
	uint64_t at, end;               /* addresses */
	struct sf_cfa_state now;
	struct sf_cfa_state *remembered; /* MAX_REMEMBERED */
	unsigned n_remembered;
	bool no_memory;
};

/* The operands of an instruction: what it has of these. */
struct operands {
	uint64_t reg;
	uint64_t number;        /* a second register, or a distance */
	struct sf_rule rule;    /* how it finds a value */
};

static bool to_value(int64_t number, int32_t *ret)
{
	*ret = (int32_t)number;
	return *ret == number;
}

/* A number times the data alignment factor. */
static bool factored(const struct machine *m, int64_t number, int32_t *ret)
{
	int64_t product;

	return !__builtin_mul_overflow(number, m->cie->data_align, &product) &&
	       to_value(product, ret);
}

/*
 * The meaning of "same" for the return address: it is still in the column's register. A walk assumes the
 * usual register (x30 on aarch64). But a routine of glibc's ld.so on aarch64 keeps the address in x15, and
 * its return column is 15.
 */
static struct sf_rule same_return(const struct machine *m)
{
	uint64_t column = m->cie->return_column;

	if (column == m->arch->return_column || column >= m->arch->n_regs)
		return (struct sf_rule){ .how = SF_HOW_SAME };
	return (struct sf_rule){ .how = SF_HOW_REGISTER, .reg = (uint8_t)column };
}

static void set_rule(struct machine *m, uint64_t reg, struct sf_rule rule)
{
	/* __builtin_eh_return() brings its results in the first registers (rax, x0), so its function keeps them. */
	if (reg == 0 && rule.how == SF_HOW_AT_CFA)
		m->now.rules.flags |= SF_RULES_LEAVES;
	if (reg == m->cie->return_column)
		m->now.rules.ra = rule.how == SF_HOW_SAME ? same_return(m) : rule;
	if (reg == m->arch->sp)
		m->now.sp = rule;
	for (unsigned i = 0; i < m->arch->n_saved; i++) {
		if (m->arch->saved[i] == reg)
			m->now.rules.saved[i] = rule;
	}
}

/* Takes an expression out of the program. */
static bool read_expression(struct machine *m, struct sf_rule *ret)
{
	uint64_t size = sf_bytes_uleb(&m->code);
	const uint8_t *bytes = sf_bytes_take(&m->code, size);

	if (!bytes || size > UINT16_MAX)
		return false;
	ret->size = (uint16_t)size;
	m->no_memory = !sf_rows_expression(m->rows, bytes, size, &ret->value);
	return !m->no_memory;
}

enum operand {
	NO_OPERAND,
	REGISTER,
	NUMBER,       /* a second register, or one that is not used */
	DISTANCE_1, DISTANCE_2, DISTANCE_4, DISTANCE_8, /* of so many bytes */
	ADDRESS,
	VALUE,        /* not negative */
	OFFSET,       /* the same; one that is too large leaves no rule */
	FACTORED,     /* a value that is not negative, times the data alignment factor */
	NEGATIVE,     /* the same, to be subtracted: obsolete (LSB Core 5.0, section 10.5.2) */
	SIGNED,       /* any value, times the data alignment factor */
	EXPRESSION,
};

static bool read_operand(struct machine *m, enum operand kind, struct operands *ret)
{
	uint64_t number;

	switch (kind) {
	case NO_OPERAND:
		return true;
	case REGISTER:
		ret->reg = sf_bytes_uleb(&m->code);
		return true;
	case NUMBER:
		ret->number = sf_bytes_uleb(&m->code);
		return true;
	case DISTANCE_1: case DISTANCE_2: case DISTANCE_4: case DISTANCE_8:
		ret->number = sf_bytes_number(&m->code, (size_t)1 << (kind - DISTANCE_1));
		return true;
	case ADDRESS:
		return sf_pointer_read(&m->cie->pointers, &m->code, m->cie->encoding, &ret->number);
	case VALUE:
		number = sf_bytes_uleb(&m->code);
		return number <= INT32_MAX && to_value((int64_t)number, &ret->rule.value);
	case OFFSET:
		number = sf_bytes_uleb(&m->code);
		ret->rule.how = number <= INT32_MAX ? SF_HOW_REGISTER_PLUS : SF_HOW_UNDEFINED;
		ret->rule.value = number <= INT32_MAX ? (int32_t)number : 0;
		return true;
	case FACTORED: case NEGATIVE:
		number = sf_bytes_uleb(&m->code);
		return number <= INT64_MAX &&
		       factored(m, kind == FACTORED ? (int64_t)number : -(int64_t)number,
				&ret->rule.value);
	case SIGNED:
		return factored(m, sf_bytes_sleb(&m->code), &ret->rule.value);
	case EXPRESSION:
		return read_expression(m, &ret->rule);
	}
	return false;
}

static bool add_row(struct machine *m)
{
	struct sf_rules rules;

	return sf_cfa_rules(m->rows, m->arch, &m->now, &rules) && sf_rows_add(m->rows, m->at, &rules);
}

static bool advance_to(struct machine *m, uint64_t address)
{
	if (!m->initial || address < m->at)
		return false;
	m->no_memory = !add_row(m);
	m->at = address;
	return !m->no_memory;
}

static bool do_advance(struct machine *m, const struct operands *operands)
{
	uint64_t bytes, address;

	return !__builtin_mul_overflow(operands->number, m->cie->code_align, &bytes) &&
	       !__builtin_add_overflow(m->at, bytes, &address) && advance_to(m, address);
}

static bool do_set_loc(struct machine *m, const struct operands *operands)
{
	return advance_to(m, operands->number);
}

static bool do_nop(struct machine *m, const struct operands *operands)
{
	(void)m;
	(void)operands;
	return true;
}

static bool do_rule(struct machine *m, const struct operands *operands)
{
	set_rule(m, operands->reg, operands->rule);
	return true;
}

/* Back to what the initial instructions said. */
static bool do_restore(struct machine *m, const struct operands *operands)
{
	if (!m->initial)
		return false;
	if (operands->reg == m->cie->return_column)
		m->now.rules.ra = m->initial->rules.ra;
	if (operands->reg == m->arch->sp)
		m->now.sp = m->initial->sp;
	for (unsigned i = 0; i < m->arch->n_saved; i++) {
		if (m->arch->saved[i] == operands->reg)
			m->now.rules.saved[i] = m->initial->rules.saved[i];
	}
	return true;
}

/* A register that no walk keeps (a vector register, say) makes the value unknown, not wrong. */
static bool do_register(struct machine *m, const struct operands *operands)
{
	struct sf_rule rule = { .how = SF_HOW_UNDEFINED };

	if (operands->number < SF_MAX_REGS)
		rule = (struct sf_rule){ .how = SF_HOW_REGISTER, .reg = (uint8_t)operands->number };
	set_rule(m, operands->reg, rule);
	return true;
}

static bool do_remember_state(struct machine *m, const struct operands *operands)
{
	(void)operands;
	if (m->n_remembered == MAX_REMEMBERED)
		return false;
	m->remembered[m->n_remembered++] = m->now;
	return true;
}

static bool do_restore_state(struct machine *m, const struct operands *operands)
{
	(void)operands;
	if (!m->n_remembered)
		return false;
	m->now = m->remembered[--m->n_remembered];
	return true;
}

static bool set_cfa(struct machine *m, uint64_t reg, int32_t value)
{
	if (reg >= SF_MAX_REGS)
		return false;
	m->now.plain = (struct sf_rule){
		.how = SF_HOW_REGISTER_PLUS, .reg = (uint8_t)reg, .value = value,
	};
	m->now.rules.cfa = m->now.plain;
	return true;
}

static bool do_def_cfa(struct machine *m, const struct operands *operands)
{
	return set_cfa(m, operands->reg, operands->rule.value);
}

/*
 * DWARF wants a CFA that is a register and an offset here (section 6.4.2.2). libgcc and gdb
 * also accept an expression, and go back to the last offset; libgcrypt's vector code relies on
 * it.
 */
static bool do_def_cfa_register(struct machine *m, const struct operands *operands)
{
	return m->now.plain.how == SF_HOW_REGISTER_PLUS &&
	       set_cfa(m, operands->reg, m->now.plain.value);
}

/*
 * Only the offset; a CFA that is an expression stays one. Behind some hand-written routines the offset is negative, which no
 * frame can have: only what follows has no rule, as unwinders run a program up to the pc.
 */
static bool do_def_cfa_offset(struct machine *m, const struct operands *operands)
{
	if (operands->rule.how == SF_HOW_UNDEFINED) {
		m->now.rules.cfa = (struct sf_rule){ .how = SF_HOW_UNDEFINED };
		return m->now.plain.how == SF_HOW_REGISTER_PLUS;
	}
	m->now.plain.value = operands->rule.value;
	if (m->now.rules.cfa.how == SF_HOW_REGISTER_PLUS || m->now.rules.cfa.how == SF_HOW_UNDEFINED)
		m->now.rules.cfa = m->now.plain;
	return m->now.plain.how == SF_HOW_REGISTER_PLUS;
}

static bool do_def_cfa_expression(struct machine *m, const struct operands *operands)
{
	m->now.rules.cfa = operands->rule;
	return true;
}

static bool do_negate_ra_state(struct machine *m, const struct operands *operands)
{
	(void)operands;
	m->now.rules.flags ^= SF_RULES_PAC;
	return m->arch->signs_returns;
}

struct instruction {
	bool (*perform)(struct machine *m, const struct operands *operands); /* false: not valid here */
	enum operand first, second;
	enum sf_how how;        /* of the rule that it gives */
};

/* DWARF 5, section 7.24, table 7.29; LSB Core 5.0, section 10.5.2; AADWARF64, section 4.4.2. */
static const struct instruction instructions[0x40] = {
	[DW_CFA_nop] = { do_nop },
	[DW_CFA_set_loc] = { do_set_loc, ADDRESS },
	[DW_CFA_advance_loc1] = { do_advance, DISTANCE_1 },
	[DW_CFA_advance_loc2] = { do_advance, DISTANCE_2 },
	[DW_CFA_advance_loc4] = { do_advance, DISTANCE_4 },
	[DW_CFA_MIPS_advance_loc8] = { do_advance, DISTANCE_8 },
	[DW_CFA_offset_extended] = { do_rule, REGISTER, FACTORED, SF_HOW_AT_CFA },
	[DW_CFA_offset_extended_sf] = { do_rule, REGISTER, SIGNED, SF_HOW_AT_CFA },
	[DW_CFA_GNU_negative_offset_extended] = { do_rule, REGISTER, NEGATIVE, SF_HOW_AT_CFA },
	[DW_CFA_val_offset] = { do_rule, REGISTER, FACTORED, SF_HOW_CFA_PLUS },
	[DW_CFA_val_offset_sf] = { do_rule, REGISTER, SIGNED, SF_HOW_CFA_PLUS },
	[DW_CFA_undefined] = { do_rule, REGISTER, .how = SF_HOW_UNDEFINED },
	[DW_CFA_same_value] = { do_rule, REGISTER, .how = SF_HOW_SAME },
	[DW_CFA_expression] = { do_rule, REGISTER, EXPRESSION, SF_HOW_AT_EXPRESSION },
	[DW_CFA_val_expression] = { do_rule, REGISTER, EXPRESSION, SF_HOW_EXPRESSION },
	[DW_CFA_restore_extended] = { do_restore, REGISTER },
	[DW_CFA_register] = { do_register, REGISTER, NUMBER },
	[DW_CFA_remember_state] = { do_remember_state },
	[DW_CFA_restore_state] = { do_restore_state },
	[DW_CFA_def_cfa] = { do_def_cfa, REGISTER, VALUE },
	[DW_CFA_def_cfa_sf] = { do_def_cfa, REGISTER, SIGNED },
	[DW_CFA_def_cfa_register] = { do_def_cfa_register, REGISTER },
	[DW_CFA_def_cfa_offset] = { do_def_cfa_offset, OFFSET },
	[DW_CFA_def_cfa_offset_sf] = { do_def_cfa_offset, SIGNED },
	[DW_CFA_def_cfa_expression] = { do_def_cfa_expression, EXPRESSION, .how = SF_HOW_EXPRESSION },
	[DW_CFA_GNU_args_size] = { do_nop, NUMBER }, /* of use to exception handling only */
	[CFA_AARCH64_NEGATE_RA_STATE] = { do_negate_ra_state },
	[CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = { do_negate_ra_state },
};

/* The three most frequent instructions have their first operand in their low six bits. */
static bool step(struct machine *m)
{
	uint8_t opcode = sf_bytes_u8(&m->code);
	uint8_t low = opcode & 0x3f;
	const struct instruction *instruction = &instructions[low];
	struct operands operands = { .reg = low, .number = low };

	switch (opcode & 0xc0) {
	case DW_CFA_advance_loc:
		return do_advance(m, &operands);
	case DW_CFA_offset:
		operands.rule.how = SF_HOW_AT_CFA;
		return read_operand(m, FACTORED, &operands) && do_rule(m, &operands);
	case DW_CFA_restore:
		return do_restore(m, &operands);
	}
	operands.rule.how = (uint8_t)instruction->how;
	return instruction->perform && read_operand(m, instruction->first, &operands) &&
	       read_operand(m, instruction->second, &operands) &&
	       instruction->perform(m, &operands);
}

/* Runs the instructions up to the function's end. Rules for addresses behind the end do not concern the function. */
static enum sf_cfa_result run(struct machine *m)
{
	while (m->at < m->end && sf_bytes_left(&m->code)) {
		if (!step(m) || m->code.bad)
			return m->no_memory ? SF_CFA_NO_MEMORY : SF_CFA_BAD;
	}
	return SF_CFA_DONE;
}

enum sf_cfa_result sf_cfa_start(const struct sf_arch *arch, const struct sf_cie *cie,
				struct sf_rows *rows, struct sf_cfa_state *ret)
{
	struct sf_cfa_state remembered[MAX_REMEMBERED];
	struct machine m = { .arch = arch, .cie = cie, .rows = rows, .code = cie->program,
			     .end = 1, .remembered = remembered };
	enum sf_cfa_result result;

	m.now = (struct sf_cfa_state){
		.rules.cfa.how = SF_HOW_UNDEFINED,
		.rules.ra = same_return(&m),
		.rules.flags = cie->signal ? SF_RULES_SIGNAL : 0,
	};
	result = run(&m);
	*ret = m.now;
	return result;
}

enum sf_cfa_result sf_cfa_run(const struct sf_arch *arch, const struct sf_cie *cie,
			      const struct sf_cfa_state *state, struct sf_rows *rows,
			      const struct sf_fde *fde)
{
	struct sf_cfa_state remembered[MAX_REMEMBERED];
	struct machine m = { .arch = arch, .cie = cie, .rows = rows, .initial = state,
			     .code = fde->program, .at = fde->start, .end = fde->end,
			     .now = *state, .remembered = remembered };
	enum sf_cfa_result result = run(&m);

	if (result != SF_CFA_DONE || m.at >= fde->end)
		return result;
	return add_row(&m) ? SF_CFA_DONE : SF_CFA_NO_MEMORY;
}
