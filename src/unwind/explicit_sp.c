/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that say where the caller's sp is. Nearly all leave that to the CFA, which is the caller's sp by definition,
 * and so does an unwind table. The end of glibc's longjmp and setcontext has the place of the saved registers as the
 * CFA, and the sp of where the thread goes in a register or in that place (sysdeps/x86_64/__longjmp.S,
 * sysdeps/unix/sysv/linux/x86_64/setcontext.S). GHC's StgRun has its own sp as the CFA (rts/StgCRun.c). There the
 * rule for sp becomes the CFA, and what counts from the old one is found from its register.
 */
#include "unwind/cfi.h"

#include <dwarf.h>

#define MAX_SLEB 6 /* bytes of a sum of two numbers of 32 bits */
#define N_BREG 32

static size_t put_sleb(uint8_t *ret, int64_t value)
{
	size_t n = 0;

	for (; value < -64 || value >= 64; value >>= 7)
		ret[n++] = (uint8_t)(value & 0x7f) | 0x80;
	ret[n++] = value & 0x7f;
	return n;
}

/* What lies at the old CFA + value, without the CFA. */
static bool at_register(struct sf_rows *rows, const struct sf_rule *old_cfa, struct sf_rule *rule)
{
	uint8_t bytes[1 + MAX_SLEB] = { (uint8_t)(DW_OP_breg0 + old_cfa->reg) };

	rule->how = SF_HOW_AT_EXPRESSION;
	rule->reg = 0;
	rule->size = (uint16_t)(1 + put_sleb(bytes + 1, (int64_t)old_cfa->value + rule->value));
	return sf_rows_expression(rows, bytes, rule->size, &rule->value);
}

/* What is the old CFA + value; a sum that is too large is not known. */
static void add_register(const struct sf_rule *old_cfa, struct sf_rule *rule)
{
	int32_t sum;

	if (__builtin_add_overflow(old_cfa->value, rule->value, &sum))
		*rule = (struct sf_rule){ .how = SF_HOW_UNDEFINED };
	else
		*rule = (struct sf_rule){ .how = SF_HOW_REGISTER_PLUS, .reg = old_cfa->reg, .value = sum };
}

static bool convert(struct sf_rows *rows, const struct sf_rule *old_cfa, struct sf_rule *rule)
{
	if (rule->how == SF_HOW_CFA_PLUS)
		add_register(old_cfa, rule);
	return rule->how != SF_HOW_AT_CFA || at_register(rows, old_cfa, rule);
}

static bool is_needed(const struct sf_cfa_state *state)
{
	const struct sf_rule *cfa = &state->rules.cfa, *sp = &state->sp;

	return cfa->how == SF_HOW_REGISTER_PLUS && cfa->reg < N_BREG && sp->how != SF_HOW_SAME &&
	       sp->how != SF_HOW_UNDEFINED && !(sp->how == SF_HOW_CFA_PLUS && sp->value == 0);
}

bool sf_cfa_rules(struct sf_rows *rows, const struct sf_arch *arch, const struct sf_cfa_state *state, struct sf_rules *ret)
{
	const struct sf_rule *old_cfa = &state->rules.cfa;
	bool fine = true;

	*ret = state->rules;
	if (!is_needed(state))
		return true;
	ret->cfa = state->sp;
	fine = convert(rows, old_cfa, &ret->cfa) && convert(rows, old_cfa, &ret->ra);
	for (unsigned i = 0; fine && i < arch->n_saved; i++)
		fine = convert(rows, old_cfa, &ret->saved[i]);
	return fine;
}
