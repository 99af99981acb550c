/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdw answers with location descriptions. Those for simple rules have fixed shapes, which are
 * built here from our rule and compared; an expression's operations are compared with the
 * bytes in our blob one by one.
 */
#include "unwind_judge.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool judge_open(struct judge *judge, int fd)
{
	*judge = (struct judge){ 0 };
	elf_version(EV_CURRENT);
	judge->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!judge->elf)
		return false;
	judge->eh = dwarf_getcfi_elf(judge->elf);
	judge->dwarf = dwarf_begin_elf(judge->elf, DWARF_C_READ, NULL);
	if (judge->dwarf)
		judge->debug = dwarf_getcfi(judge->dwarf);
	return true;
}

void judge_close(struct judge *judge)
{
	if (judge->eh)
		dwarf_cfi_end(judge->eh);
	dwarf_end(judge->dwarf);
	elf_end(judge->elf);
}

static int64_t read_leb(const uint8_t **at, const uint8_t *end, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte = 0x80;

	while (*at < end && byte & 0x80 && shift < 64) {
		byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

/* The operations that occur in call frame information of real files, with their operands. */
static bool same_operation(const Dwarf_Op *op, const uint8_t **at, const uint8_t *end)
{
	uint8_t atom;

	if (*at >= end)
		return false;
	atom = *(*at)++;
	if (atom != op->atom)
		return false;
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return read_leb(at, end, true) == (int64_t)op->number;
	switch (atom) {
	case DW_OP_plus_uconst:
	case DW_OP_constu:
		return (uint64_t)read_leb(at, end, false) == op->number;
	case DW_OP_consts:
		return read_leb(at, end, true) == (int64_t)op->number;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
		return *at < end && *(*at)++ == (uint8_t)op->number;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_skip:
	case DW_OP_bra:
		*at += 2;
		return *at <= end;
	case DW_OP_const4u:
	case DW_OP_const4s:
		*at += 4;
		return *at <= end;
	}
	return atom == DW_OP_deref || (atom >= DW_OP_dup && atom <= DW_OP_nop);
}

static bool same_expression(const struct sf_table *table, const struct sf_rule *rule,
			    const Dwarf_Op *ops, size_t n_ops)
{
	const uint8_t *at = table->blob + rule->value, *end = at + rule->size;

	if ((uint64_t)rule->value + rule->size > table->header->blob_size)
		return false;
	for (size_t i = 0; i < n_ops; i++) {
		if (!same_operation(&ops[i], &at, end))
			return false;
	}
	return at == end;
}

static bool same_cfa(const struct sf_table *table, const struct sf_rule *rule, const Dwarf_Op *ops,
		     size_t n_ops)
{
	if (rule->how == SF_HOW_EXPRESSION)
		return same_expression(table, rule, ops, n_ops);
	if (rule->how == SF_HOW_UNDEFINED)
		return n_ops == 0;
	if (rule->how != SF_HOW_REGISTER_PLUS || n_ops != 1)
		return false;
	if (ops[0].atom == DW_OP_bregx)
		return ops[0].number == rule->reg && (int64_t)ops[0].number2 == rule->value;
	return ops[0].atom == DW_OP_breg0 + rule->reg && (int64_t)ops[0].number == rule->value;
}

static bool is_cfa_offset(int32_t value, const Dwarf_Op *ops, size_t n_ops)
{
	if (n_ops == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n_ops == 1)
		return value == 0;
	return n_ops == 2 && ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number == value;
}

static bool same_value(const struct sf_table *table, const struct sf_rule *rule,
		       const Dwarf_Op *ops, size_t n_ops)
{
	const bool is_value = n_ops && ops[n_ops - 1].atom == DW_OP_stack_value;

	switch ((enum sf_how)rule->how) {
	case SF_HOW_SAME:
		return !ops;
	case SF_HOW_UNDEFINED:
		return ops && n_ops == 0;
	case SF_HOW_AT_CFA:
		return is_cfa_offset(rule->value, ops, n_ops);
	case SF_HOW_CFA_PLUS:
		return is_value && is_cfa_offset(rule->value, ops, n_ops - 1);
	case SF_HOW_REGISTER:
		return n_ops == 1 && ops[0].atom == DW_OP_regx && ops[0].number == rule->reg;
	case SF_HOW_REGISTER_PLUS:
		return false;
	case SF_HOW_AT_EXPRESSION:
		return n_ops > 1 && ops[0].atom == DW_OP_call_frame_cfa &&
		       same_expression(table, rule, ops + 1, n_ops - 1);
	case SF_HOW_EXPRESSION:
		return is_value && n_ops > 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		       same_expression(table, rule, ops + 1, n_ops - 2);
	}
	return false;
}

static void describe(char text[256], const char *what, const struct sf_rule *rule,
		     const Dwarf_Op *ops, size_t n_ops)
{
	int n = snprintf(text, 256, "%s: ours how %u reg %u value %d size %u; libdw%s", what,
			 rule->how, rule->reg, rule->value, rule->size, ops ? "" : " same");

	for (size_t i = 0; i < n_ops && n < 200; i++)
		n += snprintf(text + n, 256 - (size_t)n, " %#x(%lld)", ops[i].atom,
			      (long long)ops[i].number);
}

/*
 * libdw starts from the ABI's rules, and on x86-64 names register 0 there where it means rbx,
 * which is 3 (elfutils 0.188, backends/x86_64_cfi.c: "ULEB128_7 (0), %rbx"): a rbx that nothing
 * is said about is undefined for it. A file that says so itself is not excused: ours is not
 * SAME then.
 */
static bool is_known_bug(const struct sf_table *table, int number, const struct sf_rule *rule,
			 const Dwarf_Op *ops, size_t n_ops)
{
	return table->header->elf_machine == EM_X86_64 && number == 3 &&
	       rule->how == SF_HOW_SAME && ops && n_ops == 0;
}

/*
 * A return column that is not the usual one (x15 in aarch64's ld.so) and about which nothing is
 * said is undefined for libdw: the ABI's rules only name x30. The code returns through it (ret
 * x15).
 */
static bool is_unusual_column(const struct sf_table *table, int number, const struct sf_rule *rule,
			      const Dwarf_Op *ops, size_t n_ops)
{
	return number != sf_arch_by_machine(table->header->elf_machine)->return_column &&
	       rule->how == SF_HOW_REGISTER && rule->reg == number && ops && n_ops == 0;
}

/*
 * Where rules say that the caller's sp is not the CFA (longjmp), ours have that sp as the CFA, and count from the register of
 * libdw's.
 */
static bool counts_from_register(const struct sf_table *table, Dwarf_Frame *frame, const struct sf_rule *rule, const Dwarf_Op *ops,
				 size_t n_ops)
{
	const uint8_t *at = table->blob + rule->value, *end = at + rule->size;
	Dwarf_Op *cfa = NULL;
	size_t n = 0;
	int64_t value;

	if (rule->how != SF_HOW_AT_EXPRESSION || (uint64_t)rule->value + rule->size > table->header->blob_size ||
	    dwarf_frame_cfa(frame, &cfa, &n) != 0 || n != 1 || cfa[0].atom != DW_OP_bregx || at == end ||
	    *at++ != DW_OP_breg0 + cfa[0].number)
		return false;
	value = read_leb(&at, end, true) - (int64_t)cfa[0].number2;
	return at == end && is_cfa_offset((int32_t)value, ops, n_ops);
}

/* The CFA is what libdw says of sp. */
static bool is_sp_of(const struct sf_table *table, Dwarf_Frame *frame, const struct sf_rule *rule)
{
	const int sp = sf_arch_by_machine(table->header->elf_machine)->sp;
	Dwarf_Op memory[3], *ops = NULL;
	size_t n_ops = 0;

	return dwarf_frame_register(frame, sp, memory, &ops, &n_ops) == 0 &&
	       (((rule->how == SF_HOW_REGISTER || rule->how == SF_HOW_EXPRESSION) && same_value(table, rule, ops, n_ops)) ||
		counts_from_register(table, frame, rule, ops, n_ops));
}

static bool compare_register(const struct sf_table *table, Dwarf_Frame *frame, int number,
			     const struct sf_rule *rule, char text[256])
{
	Dwarf_Op memory[3], *ops = NULL;
	size_t n_ops = 0;
	char what[32];

	if (dwarf_frame_register(frame, number, memory, &ops, &n_ops) == 0 &&
	    (same_value(table, rule, ops, n_ops) || counts_from_register(table, frame, rule, ops, n_ops) ||
	     is_known_bug(table, number, rule, ops, n_ops) ||
	     is_unusual_column(table, number, rule, ops, n_ops)))
		return true;
	snprintf(what, sizeof(what), "register %d", number);
	describe(text, what, rule, ops, n_ops);
	return false;
}

/*
 * libdw fails where DW_CFA_def_cfa_register follows an expression, which libgcc and gdb accept
 * (DWARF 5, section 6.4.2.2, forbids it; libgcrypt has it).
 */
static enum verdict compare_cfa(const struct sf_table *table, Dwarf_Frame *frame,
				const struct sf_rule *rule, char text[256])
{
	Dwarf_Op *ops = NULL;
	size_t n_ops = 0;

	if (dwarf_frame_cfa(frame, &ops, &n_ops) != 0)
		return VERDICT_STRICT;
	if (same_cfa(table, rule, ops, n_ops) || is_sp_of(table, frame, rule))
		return VERDICT_SAME_RULES;
	describe(text, "cfa", rule, ops, n_ops);
	return VERDICT_DIFFERENT;
}

static enum verdict compare_frame(const struct sf_table *table, Dwarf_Frame *frame,
				  const struct sf_rules *rules, char text[256])
{
	const struct sf_arch *arch = sf_arch_by_machine(table->header->elf_machine);
	bool is_signal;
	int column = dwarf_frame_info(frame, NULL, NULL, &is_signal);
	enum verdict verdict = compare_cfa(table, frame, &rules->cfa, text);

	if (is_signal != !!(rules->flags & SF_RULES_SIGNAL)) {
		snprintf(text, 256, "signal frame: libdw %d", is_signal);
		return VERDICT_DIFFERENT;
	}
	if (!compare_register(table, frame, column, &rules->ra, text))
		return VERDICT_DIFFERENT;
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (!compare_register(table, frame, arch->saved[i], &rules->saved[i], text))
			return VERDICT_DIFFERENT;
	}
	return verdict;
}

enum verdict judge_address(const struct judge *judge, const struct sf_table *table,
			   uint64_t address, char text[256])
{
	const struct sf_rules *rules = sf_table_find(table, address);
	Dwarf_Frame *frame = NULL;
	enum verdict verdict;

	text[0] = 0;
	if (!(judge->eh && dwarf_cfi_addrframe(judge->eh, address, &frame) == 0) &&
	    !(judge->debug && dwarf_cfi_addrframe(judge->debug, address, &frame) == 0))
		frame = NULL;
	if (!frame && !rules)
		return VERDICT_BOTH_NONE;
	if (!frame && rules->flags & SF_RULES_GUESS)
		return VERDICT_GUESS;
	if (!frame) {
		snprintf(text, 256, "libdw: %s", dwarf_errmsg(-1));
		return VERDICT_ONLY_OURS;
	}
	if (!rules)
		verdict = VERDICT_ONLY_JUDGE;
	else
		verdict = compare_frame(table, frame, rules, text);
	free(frame);
	return verdict;
}

bool judge_begins(const struct judge *judge, uint64_t address)
{
	Dwarf_CFI *const all[] = { judge->eh, judge->debug };
	Dwarf_Addr start = address, end;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		Dwarf_Frame *frame = NULL;
		bool signal;

		if (!all[i] || dwarf_cfi_addrframe(all[i], address, &frame) != 0)
			continue;
		dwarf_frame_info(frame, &start, &end, &signal);
		free(frame);
		break;
	}
	return start == address;
}
