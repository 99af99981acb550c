/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping by the rows of an unwind table: the canonical frame address (CFA) is the caller's stack
 * pointer, and the rules say where the return address and the callee-saved registers are.
 */

#include "frozen/unwind/expression.h"
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

/* The inputs of the rules of one step. */
struct frame {
	const struct sf_arch *arch;
	const struct sf_regs *regs;
	const struct sf_reader *memory;
	const struct sf_table *table;
	uint64_t passed; /* as in struct sf_cursor */
	uint64_t cfa;
	bool has_cfa;   /* not yet, while the CFA's own rule is applied */
	bool by_passed; /* the CFA is from one of these registers */
};

/* The result of a rule. UNKNOWN is no failure as long as no later rule needs the register. */
enum outcome { VALUE, UNKNOWN, FAILED };

static enum outcome get_register(const struct frame *frame, unsigned reg, uint64_t *ret)
{
	if (!sf_reg_known(frame->regs, reg))
		return UNKNOWN;
	*ret = frame->regs->r[reg];
	return VALUE;
}

static enum outcome get_memory(const struct frame *frame, uint64_t addr, uint64_t *ret, enum sf_end *why)
{
	if (sf_read_u64(frame->memory, addr, ret))
		return VALUE;
	*why = sf_why_unread(frame->memory, addr, sizeof(*ret));
	return FAILED;
}

static enum outcome get_expression(const struct frame *frame, const struct sf_rule *rule, uint64_t *ret, enum sf_end *why)
{
	struct sf_expression expression = {
		.bytes = sf_table_expression(frame->table, rule),
		.size = rule->size,
		.has_initial = frame->has_cfa,
		.initial = frame->cfa,
	};

	*why = SF_END_EXPRESSION;
	return expression.bytes && sf_expression_eval(&expression, frame->regs, frame->memory, ret, why) ? VALUE : FAILED;
}

/* Applies a rule; `same` is the register that SF_HOW_SAME means. */
static enum outcome apply(const struct frame *frame, const struct sf_rule *rule, unsigned same,
			  uint64_t *ret, enum sf_end *why)
{
	const uint64_t value = (uint64_t)(int64_t)rule->value;
	enum outcome outcome;

	switch ((enum sf_how)rule->how) {
	case SF_HOW_SAME:
		return get_register(frame, same, ret);
	case SF_HOW_UNDEFINED:
		return UNKNOWN;
	case SF_HOW_AT_CFA:
		return get_memory(frame, frame->cfa + value, ret, why);
	case SF_HOW_CFA_PLUS:
		*ret = frame->cfa + value;
		return VALUE;
	case SF_HOW_REGISTER:
		return get_register(frame, rule->reg, ret);
	case SF_HOW_REGISTER_PLUS:
		outcome = get_register(frame, rule->reg, ret);
		if (outcome == VALUE)
			*ret += value;
		return outcome;
	case SF_HOW_AT_EXPRESSION:
		outcome = get_expression(frame, rule, ret, why);
		return outcome == VALUE ? get_memory(frame, *ret, ret, why) : outcome;
	case SF_HOW_EXPRESSION:
		return get_expression(frame, rule, ret, why);
	}
	*why = SF_END_NO_RULE; /* no such rule: the table is damaged */
	return FAILED;
}

/* Only some rules make sense for the CFA: those that do not count from it. */
static bool is_cfa_rule(const struct sf_rule *rule)
{
	const unsigned allowed = 1u << SF_HOW_REGISTER | 1u << SF_HOW_REGISTER_PLUS |
				 1u << SF_HOW_AT_EXPRESSION | 1u << SF_HOW_EXPRESSION;

	return rule->how < 32 && (allowed >> rule->how & 1);
}

/*
 * The CFA from a register that calls do not keep, as in OpenSSL's assembly. Rules that say so behind a call hold only if
 * the function that is called leaves the register alone.
 */
static bool find_passed(struct frame *frame, const struct sf_rule *rule, uint64_t *ret)
{
	if ((rule->how != SF_HOW_REGISTER && rule->how != SF_HOW_REGISTER_PLUS) || rule->reg >= SF_MAX_REGS ||
	    !(frame->passed >> rule->reg & 1))
		return false;
	*ret = frame->regs->r[rule->reg] + (rule->how == SF_HOW_REGISTER_PLUS ? (uint64_t)(int64_t)rule->value : 0);
	frame->by_passed = true;
	return true;
}

static enum sf_step find_cfa(struct frame *frame, const struct sf_rules *rules, enum sf_end *why)
{
	const struct sf_rule *rule = &rules->cfa;
	uint64_t cfa = 0;

	*why = SF_END_NO_RULE;
	if (!is_cfa_rule(rule))
		return SF_STEP_FAILED;
	switch (apply(frame, rule, SF_NO_REG, &cfa, why)) {
	case UNKNOWN:
		if (find_passed(frame, rule, &cfa))
			break;
		/* The frame pointer may lead on where sp is only a lower bound (walk.h). */
		*why = SF_END_REGISTER;
		return rule->reg == frame->arch->sp ? SF_STEP_NOT_MINE : SF_STEP_FAILED;
	case FAILED:
		return SF_STEP_FAILED;
	case VALUE:
		break;
	}
	frame->cfa = cfa;
	frame->has_cfa = true;
	return SF_STEP_TAKEN;
}

/* Whether the rule reads nothing, or one word of the frame: between its sp and its caller's, which are `size` bytes apart. */
static bool stays_in_frame(const struct sf_rule *rule, uint64_t size)
{
	const int64_t below = -(int64_t)rule->value;

	if (rule->how == SF_HOW_AT_CFA)
		return below >= (int64_t)sizeof(uint64_t) && (uint64_t)below <= size;
	return rule->how != SF_HOW_AT_EXPRESSION && rule->how != SF_HOW_EXPRESSION;
}

/* Whether the CFA of the innermost frame is read below sp, as in OpenSSL's SHA-2 by AVX2. A copy that begins at sp does not have it. */
static bool reads_below_sp(const struct sf_cursor *cursor, struct frame frame, const struct sf_rules *rules)
{
	const uint64_t sp = cursor->regs.r[frame.arch->sp];
	uint64_t unread = sp, cfa;
	struct sf_reader above;
	enum sf_end why;

	if (!cursor->exact || sp != cursor->still->regs.r[frame.arch->sp] || stays_in_frame(&rules->cfa, 0))
		return false;
	above = sf_reader_from(frame.memory, sp, &unread);
	frame.memory = &above;
	return apply(&frame, &rules->cfa, SF_NO_REG, &cfa, &why) == FAILED && sp - unread - 1 < frame.arch->red_zone;
}

/* The return address, without its signature. 0: there is no caller. */
static enum sf_step find_return(const struct frame *frame, const struct sf_rules *rules, uint64_t *ret, enum sf_end *why)
{
	uint64_t address = 0;

	switch (apply(frame, &rules->ra, frame->arch->lr, &address, why)) {
	case UNKNOWN:
		*why = SF_END_REGISTER;
		return SF_STEP_FAILED;
	case FAILED:
		return SF_STEP_FAILED;
	case VALUE:
		break;
	}
	*ret = address & frame->arch->code_mask;
	return *ret == 0 ? SF_STEP_ROOT : SF_STEP_TAKEN;
}

/* Where the row that covers pc begins. */
static uint64_t start_of_row(const struct sf_cursor *cursor, const struct frame *frame)
{
	const uint64_t pc = cursor->regs.pc;
	const struct sf_region *region = sf_frame_region(cursor->still, pc, true);
	struct sf_row_range row;

	return region && sf_table_range(frame->table, pc - region->bias, &row) ? row.start + region->bias : pc;
}

/*
 * Rules keep saying that a register lies in its slot after the instruction that took it from there (gcc's do). Then the
 * slot is below sp. A copy that begins at sp does not have it, and the register has it again. That instruction is just
 * before pc, or just before pc's row: a row begins behind it where it moves the CFA, and the function may go on from there,
 * but no longer with the register.
 */
static bool is_taken_back(const struct sf_cursor *cursor, const struct frame *frame, const struct sf_rule *rule, unsigned reg)
{
	const struct sf_arch *arch = frame->arch;
	const uint64_t slot = frame->cfa + (uint64_t)(int64_t)rule->value, below = cursor->regs.r[arch->sp] - slot;
	const struct sf_reader code = sf_reader_outside(frame->memory);
	const unsigned words = (unsigned)(below / 8);

	return cursor->exact && rule->how == SF_HOW_AT_CFA && arch->has_popped && below <= arch->red_zone && below % 8 == 0 &&
	       (arch->has_popped(&code, cursor->regs.pc, reg, words) ||
		arch->has_popped(&code, start_of_row(cursor, frame), reg, words));
}

static enum outcome find_saved(const struct sf_cursor *cursor, const struct frame *frame, const struct sf_rule *rule, unsigned reg,
			       uint64_t *ret)
{
	enum sf_end why;
	const enum outcome outcome = apply(frame, rule, reg, ret, &why);

	return outcome == FAILED && is_taken_back(cursor, frame, rule, reg) ? get_register(frame, reg, ret) : outcome;
}

/*
 * The caller's callee-saved registers, in place. One that cannot be found becomes unknown, which
 * matters only if a rule further up needs it. All other registers are lost in a call, but for `passed`.
 */
static void restore_saved(struct sf_cursor *cursor, const struct frame *frame, const struct sf_rules *rules)
{
	uint64_t values[SF_MAX_SAVED], known = 0;
	const struct sf_arch *arch = frame->arch;
	struct sf_regs *regs = &cursor->regs;

	for (unsigned i = 0; i < arch->n_saved; i++) {
		const unsigned reg = arch->saved[i];

		if (find_saved(cursor, frame, &rules->saved[i], reg, &values[i]) == VALUE)
			known |= UINT64_C(1) << reg;
		cursor->passed &= ~(UINT64_C(1) << reg);
	}
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (known >> arch->saved[i] & 1)
			regs->r[arch->saved[i]] = values[i];
	}
	regs->known = known;
	cursor->passed &= ~(UINT64_C(1) << arch->sp);
	sf_reg_set(regs, arch->sp, frame->cfa);
}

/* A leaf may have no frame at all; only a signal may change to another stack. */
static bool moves_up(const struct sf_cursor *cursor, const struct sf_rules *rules, uint64_t cfa)
{
	const uint64_t sp = cursor->regs.r[cursor->still->arch->sp];

	return cfa > sp || (cfa == sp && cursor->exact) || rules->flags & SF_RULES_SIGNAL;
}

static bool is_behind_call(const struct sf_cursor *cursor, uint64_t pc)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint64_t target;

	return sf_frame_region(cursor->still, pc, false) && cursor->still->arch->is_behind_call(&code, pc, &target);
}

/*
 * Rules may say that the return address lies below sp, as it does behind an instruction that has popped it. They hold as long as
 * the code runs on from there. Behind a return they are left over from before it: so are those of OCaml's caml_raise_exn,
 * where it keeps a trace (runtime/amd64.S).
 */
static bool has_return(const struct sf_cursor *cursor, const struct frame *frame, const struct sf_rules *rules)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader code = sf_reader_outside(frame->memory);
	const uint64_t sp = cursor->regs.r[arch->sp], slot = frame->cfa + (uint64_t)(int64_t)rules->ra.value;

	/* A CFA below sp is for moves_up() to judge. */
	return rules->ra.how != SF_HOW_AT_CFA || slot >= sp || frame->cfa < sp || !arch->keeps_popped ||
	       (slot == sp - 8 && arch->keeps_popped(&code, start_of_row(cursor, frame), cursor->regs.pc));
}

static uint8_t via_of(const struct sf_rules *rules)
{
	if (rules->flags & SF_RULES_SIGNAL)
		return SF_VIA_SIGNAL;
	return rules->flags & SF_RULES_GUESS ? SF_VIA_GUESS : SF_VIA_ROWS;
}

enum sf_step sf_step_by_rules(struct sf_cursor *cursor, const struct sf_table *table,
			      const struct sf_rules *rules, enum sf_end *why)
{
	struct frame frame = {
		.arch = cursor->still->arch,
		.regs = &cursor->regs,
		.memory = &cursor->still->memory,
		.table = table,
		.passed = cursor->passed,
	};
	uint64_t pc;
	enum sf_step step;

	if (rules->ra.how == SF_HOW_UNDEFINED)
		return SF_STEP_ROOT;
	cursor->trace->below_sp |= reads_below_sp(cursor, frame, rules);
	step = find_cfa(&frame, rules, why);
	if (step == SF_STEP_TAKEN && !has_return(cursor, &frame, rules)) {
		*why = SF_END_NO_RULE;
		return SF_STEP_FAILED;
	}
	if (step == SF_STEP_TAKEN)
		step = find_return(&frame, rules, &pc, why);
	cursor->trace->by_zero = step == SF_STEP_ROOT;
	if (cursor->trace->by_zero)
		restore_saved(cursor, &frame, rules);
	if (step != SF_STEP_TAKEN)
		return step;
	if (frame.by_passed && !is_behind_call(cursor, pc)) {
		*why = SF_END_REGISTER;
		return SF_STEP_FAILED;
	}
	if (!moves_up(cursor, rules, frame.cfa)) {
		*why = SF_END_STUCK;
		return SF_STEP_FAILED;
	}
	restore_saved(cursor, &frame, rules);
	cursor->regs.pc = pc;
	cursor->via = via_of(rules);
	cursor->exact = rules->flags & SF_RULES_SIGNAL;
	return SF_STEP_TAKEN;
}

/*
 * A signal trampoline was not called, so the byte before it may be another function's (musl), and
 * its rules, if it has any, may be ordinary ones (Go). Where a row starts exactly at a return
 * address, the bytes decide.
 */
static bool is_trampoline(const struct sf_cursor *cursor, bool starts_row)
{
	return !cursor->exact && starts_row && sf_is_sigreturn(cursor->still, cursor->regs.pc);
}

/* Whether the CFA is from a register that the tail of a walk compares. */
static bool has_compared_cfa(const struct sf_arch *arch, const struct sf_rule *rule)
{
	bool compared = rule->reg == arch->sp;

	for (unsigned i = 0; i < arch->n_saved; i++)
		compared = compared || rule->reg == arch->saved[i];
	return compared;
}

/*
 * Whether a step by these rules, from a frame of `size` bytes, is a plain one (tail.h). No other stepper takes the frame,
 * whatever is in memory: those of Go and of NativeAOT read code of their own tables only.
 */
static bool is_plain(const struct sf_arch *arch, const struct sf_table *table, const struct sf_rules *rules, uint64_t size)
{
	bool plain = has_compared_cfa(arch, &rules->cfa) && !(table->header->flags & (SF_TABLE_GO | SF_TABLE_NATIVEAOT)) && !(rules->flags & (SF_RULES_SIGNAL | SF_RULES_LEAVES)) &&
		     is_cfa_rule(&rules->cfa) && stays_in_frame(&rules->cfa, 0) && stays_in_frame(&rules->ra, size);

	for (unsigned i = 0; plain && i < arch->n_saved; i++)
		plain = stays_in_frame(&rules->saved[i], size);
	return plain;
}

enum sf_step sf_step_rows(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t sp = cursor->regs.r[arch->sp];
	struct sf_row_range row;
	uint64_t address;
	enum sf_step step;
	bool found;

	if (!region || !region->table)
		return SF_STEP_NOT_MINE;
	/* A return address belongs to the call before it. */
	address = cursor->regs.pc - region->bias;
	found = sf_table_range(region->table, address - !cursor->exact, &row);
	if (is_trampoline(cursor, found ? row.end == address
					: sf_table_starts_row(region->table, address)) ||
	    !found || row.rules->flags & SF_RULES_NONE)
		return SF_STEP_NOT_MINE;
	/* The kernel's own frame has every register; rules keep only the callee-saved ones. */
	if (row.rules->flags & SF_RULES_SIGNAL && sf_is_sigreturn(cursor->still, cursor->regs.pc))
		return SF_STEP_NOT_MINE;
	/* Expressions may use pc by the return column: the PLT's do (DW_OP_breg16). */
	if (arch->lr == SF_NO_REG)
		sf_reg_set(&cursor->regs, arch->return_column, cursor->regs.pc);
	step = row.rules->flags & SF_RULES_LEAVES ? sf_step_leaving(cursor, region->table, row.rules, why)
						  : sf_step_by_rules(cursor, region->table, row.rules, why);
	/* At the start of a row or of the region, code was read. A root by a return address of 0 is none of a tail (tail.c). */
	if (cursor->tail && (step == SF_STEP_TAKEN || step == SF_STEP_ROOT) && row.end != address &&
	    address + region->bias > region->start &&
	    is_plain(arch, region->table, row.rules, cursor->regs.r[arch->sp] - sp))
		sf_tail_plain(cursor->tail);
	return step;
}
