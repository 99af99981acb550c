/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes programs of call frame instructions, with a small function per instruction and a table of
 * these functions. Rules have the form in which an unwind table stores them. Rules for registers that no
 * walk needs are decoded and dropped. Every error ends the program, because a part of a function's rules
 * would be a guess.
 */
#include "unwind/cfa.h"

#include <dwarf.h>
#include <limits.h>

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
	unsigned n_remembered;
	bool no_memory;
	struct sf_cfa_state remembered[MAX_REMEMBERED];
};

/* False when the instruction is not valid here. */
typedef bool instruction_fn(struct machine *m);

static bool to_value(int64_t number, int32_t *ret)
{
	*ret = (int32_t)number;
	return *ret == number;
}

static bool unsigned_value(uint64_t number, int32_t *ret)
{
	return number <= INT32_MAX && to_value((int64_t)number, ret);
}

/* A number times the data alignment factor. */
static bool factored(const struct machine *m, int64_t number, int32_t *ret)
{
	int64_t product;

	return !__builtin_mul_overflow(number, m->cie->data_align, &product) &&
	       to_value(product, ret);
}

static bool unsigned_factored(const struct machine *m, uint64_t number, int32_t *ret)
{
	return number <= INT64_MAX && factored(m, (int64_t)number, ret);
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
	if (reg == m->cie->return_column)
		m->now.rules.ra = rule.how == SF_HOW_SAME ? same_return(m) : rule;
	for (unsigned i = 0; i < m->arch->n_saved; i++) {
		if (m->arch->saved[i] == reg)
			m->now.rules.saved[i] = rule;
	}
}

/* Takes an expression out of the program; `how` says what it is for. */
static bool read_expression(struct machine *m, enum sf_how how, struct sf_rule *ret)
{
	uint64_t size = sf_bytes_uleb(&m->code);
	const uint8_t *bytes = sf_bytes_take(&m->code, size);

	if (!bytes || size > UINT16_MAX)
		return false;
	*ret = (struct sf_rule){ .how = (uint8_t)how, .size = (uint16_t)size };
	m->no_memory = !sf_rows_expression(m->rows, bytes, size, &ret->value);
	return !m->no_memory;
}

static bool advance_to(struct machine *m, uint64_t address)
{
	if (!m->initial || address < m->at)
		return false;
	m->no_memory = !sf_rows_add(m->rows, m->at, &m->now.rules);
	m->at = address;
	return !m->no_memory;
}

static bool advance(struct machine *m, uint64_t delta)
{
	uint64_t bytes, address;

	return !__builtin_mul_overflow(delta, m->cie->code_align, &bytes) &&
	       !__builtin_add_overflow(m->at, bytes, &address) && advance_to(m, address);
}

static bool do_nop(struct machine *m)
{
	(void)m;
	return true;
}

static bool do_set_loc(struct machine *m)
{
	uint64_t address;

	return sf_pointer_read(&m->cie->pointers, &m->code, m->cie->encoding, &address) &&
	       advance_to(m, address);
}

static bool do_advance_loc1(struct machine *m)
{
	return advance(m, sf_bytes_number(&m->code, 1));
}

static bool do_advance_loc2(struct machine *m)
{
	return advance(m, sf_bytes_number(&m->code, 2));
}

static bool do_advance_loc4(struct machine *m)
{
	return advance(m, sf_bytes_number(&m->code, 4));
}

static bool do_advance_loc8(struct machine *m)
{
	return advance(m, sf_bytes_number(&m->code, 8));
}

static bool offset_rule(struct machine *m, uint64_t reg, enum sf_how how, int64_t number)
{
	struct sf_rule rule = { .how = (uint8_t)how };

	if (!factored(m, number, &rule.value))
		return false;
	set_rule(m, reg, rule);
	return true;
}

static bool do_offset_extended(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	uint64_t number = sf_bytes_uleb(&m->code);

	return number <= INT64_MAX && offset_rule(m, reg, SF_HOW_AT_CFA, (int64_t)number);
}

static bool do_offset_extended_sf(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);

	return offset_rule(m, reg, SF_HOW_AT_CFA, sf_bytes_sleb(&m->code));
}

/* Obsolete: an offset to subtract (LSB Core 5.0, section 10.5.2). */
static bool do_negative_offset_extended(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	uint64_t number = sf_bytes_uleb(&m->code);

	return number <= INT64_MAX && offset_rule(m, reg, SF_HOW_AT_CFA, -(int64_t)number);
}

static bool do_val_offset(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	uint64_t number = sf_bytes_uleb(&m->code);

	return number <= INT64_MAX && offset_rule(m, reg, SF_HOW_CFA_PLUS, (int64_t)number);
}

static bool do_val_offset_sf(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);

	return offset_rule(m, reg, SF_HOW_CFA_PLUS, sf_bytes_sleb(&m->code));
}

/* Back to what the initial instructions said. */
static bool restore(struct machine *m, uint64_t reg)
{
	if (!m->initial)
		return false;
	if (reg == m->cie->return_column)
		m->now.rules.ra = m->initial->rules.ra;
	for (unsigned i = 0; i < m->arch->n_saved; i++) {
		if (m->arch->saved[i] == reg)
			m->now.rules.saved[i] = m->initial->rules.saved[i];
	}
	return true;
}

static bool do_restore_extended(struct machine *m)
{
	return restore(m, sf_bytes_uleb(&m->code));
}

static bool do_undefined(struct machine *m)
{
	set_rule(m, sf_bytes_uleb(&m->code), (struct sf_rule){ .how = SF_HOW_UNDEFINED });
	return true;
}

static bool do_same_value(struct machine *m)
{
	set_rule(m, sf_bytes_uleb(&m->code), (struct sf_rule){ .how = SF_HOW_SAME });
	return true;
}

/* A register that no walk keeps (a vector register, say) makes the value unknown, not wrong. */
static bool do_register(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	uint64_t other = sf_bytes_uleb(&m->code);
	struct sf_rule rule = { .how = SF_HOW_UNDEFINED };

	if (other < SF_MAX_REGS)
		rule = (struct sf_rule){ .how = SF_HOW_REGISTER, .reg = (uint8_t)other };
	set_rule(m, reg, rule);
	return true;
}

static bool do_remember_state(struct machine *m)
{
	if (m->n_remembered == MAX_REMEMBERED)
		return false;
	m->remembered[m->n_remembered++] = m->now;
	return true;
}

static bool do_restore_state(struct machine *m)
{
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

/* Only the offset; a CFA that is an expression stays one. */
static bool set_cfa_offset(struct machine *m, int32_t value)
{
	m->now.plain.value = value;
	if (m->now.rules.cfa.how == SF_HOW_REGISTER_PLUS)
		m->now.rules.cfa = m->now.plain;
	return m->now.plain.how == SF_HOW_REGISTER_PLUS;
}

static bool do_def_cfa(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	int32_t value;

	return unsigned_value(sf_bytes_uleb(&m->code), &value) && set_cfa(m, reg, value);
}

static bool do_def_cfa_sf(struct machine *m)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	int32_t value;

	return factored(m, sf_bytes_sleb(&m->code), &value) && set_cfa(m, reg, value);
}

/*
 * DWARF wants a CFA that is a register and an offset here (section 6.4.2.2). libgcc and gdb
 * also accept an expression, and go back to the last offset; libgcrypt's vector code relies on
 * it.
 */
static bool do_def_cfa_register(struct machine *m)
{
	return m->now.plain.how == SF_HOW_REGISTER_PLUS &&
	       set_cfa(m, sf_bytes_uleb(&m->code), m->now.plain.value);
}

static bool do_def_cfa_offset(struct machine *m)
{
	int32_t value;

	return unsigned_value(sf_bytes_uleb(&m->code), &value) && set_cfa_offset(m, value);
}

static bool do_def_cfa_offset_sf(struct machine *m)
{
	int32_t value;

	return factored(m, sf_bytes_sleb(&m->code), &value) && set_cfa_offset(m, value);
}

static bool do_def_cfa_expression(struct machine *m)
{
	return read_expression(m, SF_HOW_EXPRESSION, &m->now.rules.cfa);
}

static bool register_expression(struct machine *m, enum sf_how how)
{
	uint64_t reg = sf_bytes_uleb(&m->code);
	struct sf_rule rule;

	if (!read_expression(m, how, &rule))
		return false;
	set_rule(m, reg, rule);
	return true;
}

static bool do_expression(struct machine *m)
{
	return register_expression(m, SF_HOW_AT_EXPRESSION);
}

static bool do_val_expression(struct machine *m)
{
	return register_expression(m, SF_HOW_EXPRESSION);
}

/* How much a call has pushed: of use to exception handling only. */
static bool do_args_size(struct machine *m)
{
	sf_bytes_uleb(&m->code);
	return true;
}

static bool do_negate_ra_state(struct machine *m)
{
	m->now.rules.flags ^= SF_RULES_PAC;
	return m->arch->signs_returns;
}

/* DWARF 5, section 7.24, table 7.29; LSB Core 5.0, section 10.5.2; AADWARF64, section 4.4.2. */
static instruction_fn *const instructions[0x40] = {
	[DW_CFA_nop] = do_nop,
	[DW_CFA_set_loc] = do_set_loc,
	[DW_CFA_advance_loc1] = do_advance_loc1,
	[DW_CFA_advance_loc2] = do_advance_loc2,
	[DW_CFA_advance_loc4] = do_advance_loc4,
	[DW_CFA_MIPS_advance_loc8] = do_advance_loc8,
	[DW_CFA_offset_extended] = do_offset_extended,
	[DW_CFA_offset_extended_sf] = do_offset_extended_sf,
	[DW_CFA_GNU_negative_offset_extended] = do_negative_offset_extended,
	[DW_CFA_val_offset] = do_val_offset,
	[DW_CFA_val_offset_sf] = do_val_offset_sf,
	[DW_CFA_restore_extended] = do_restore_extended,
	[DW_CFA_undefined] = do_undefined,
	[DW_CFA_same_value] = do_same_value,
	[DW_CFA_register] = do_register,
	[DW_CFA_remember_state] = do_remember_state,
	[DW_CFA_restore_state] = do_restore_state,
	[DW_CFA_def_cfa] = do_def_cfa,
	[DW_CFA_def_cfa_sf] = do_def_cfa_sf,
	[DW_CFA_def_cfa_register] = do_def_cfa_register,
	[DW_CFA_def_cfa_offset] = do_def_cfa_offset,
	[DW_CFA_def_cfa_offset_sf] = do_def_cfa_offset_sf,
	[DW_CFA_def_cfa_expression] = do_def_cfa_expression,
	[DW_CFA_expression] = do_expression,
	[DW_CFA_val_expression] = do_val_expression,
	[DW_CFA_GNU_args_size] = do_args_size,
	[CFA_AARCH64_NEGATE_RA_STATE] = do_negate_ra_state,
	[CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = do_negate_ra_state,
};

/* The three most frequent instructions have an operand in their low six bits. */
static bool step(struct machine *m)
{
	uint8_t opcode = sf_bytes_u8(&m->code);
	uint8_t operand = opcode & 0x3f;
	int32_t value;

	switch (opcode & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(m, operand);
	case DW_CFA_offset:
		if (!unsigned_factored(m, sf_bytes_uleb(&m->code), &value))
			return false;
		set_rule(m, operand, (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = value });
		return true;
	case DW_CFA_restore:
		return restore(m, operand);
	}
	return instructions[operand] && instructions[operand](m);
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
	struct machine m;
	enum sf_cfa_result result;

	m.arch = arch;
	m.cie = cie;
	m.rows = rows;
	m.initial = NULL;
	m.code = cie->program;
	m.at = 0;
	m.end = 1;
	m.now = (struct sf_cfa_state){
		.rules.cfa.how = SF_HOW_UNDEFINED,
		.rules.ra = same_return(&m),
		.rules.flags = cie->signal ? SF_RULES_SIGNAL : 0,
	};
	m.n_remembered = 0;
	m.no_memory = false;
	result = run(&m);
	*ret = m.now;
	return result;
}

enum sf_cfa_result sf_cfa_run(const struct sf_arch *arch, const struct sf_cie *cie,
			      const struct sf_cfa_state *state, struct sf_rows *rows,
			      const struct sf_fde *fde)
{
	struct machine m;
	enum sf_cfa_result result;

	m.arch = arch;
	m.cie = cie;
	m.rows = rows;
	m.initial = state;
	m.code = fde->program;
	m.at = fde->start;
	m.end = fde->end;
	m.now = *state;
	m.n_remembered = 0;
	m.no_memory = false;
	result = run(&m);
	if (result != SF_CFA_DONE || m.at >= fde->end)
		return result;
	return sf_rows_add(rows, m.at, &m.now.rules) ? SF_CFA_DONE : SF_CFA_NO_MEMORY;
}
