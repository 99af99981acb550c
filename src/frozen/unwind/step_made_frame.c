/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for rules of code that makes the frame of the function which it calls, as calls of Lisp do in SBCL
 * (call_into_lisp in src/runtime/x86-64-assem.S). At the call the frame pointer points at that frame's record, which has the
 * frame pointer of the code itself, and the rules count the CFA from the word there. Where the function that was called was
 * left by its frame pointer, the register has that word already. With it the rules would pass over a frame. Signal-safe.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define RECORD 16 /* bytes of a frame record */
#define DW_OP_deref 0x06 /* DWARF 5, table 7.9 */
#define DW_OP_breg0 0x70

/* Whether the CFA is counted from the word at the frame pointer: DW_OP_bregN 0, DW_OP_deref. */
static bool counts_from_record(const struct sf_arch *arch, const struct sf_table *table, const struct sf_rule *cfa)
{
	const uint8_t *bytes = cfa->how == SF_HOW_EXPRESSION && cfa->size >= 3 ? sf_table_expression(table, cfa) : NULL;

	return bytes && bytes[0] == DW_OP_breg0 + arch->fp && bytes[1] == 0 && bytes[2] == DW_OP_deref;
}

enum sf_step sf_step_made_frame(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t record = cursor->regs.r[arch->sp] - RECORD;
	const struct sf_rules *rules;
	uint64_t fp;

	if (cursor->exact || cursor->via != SF_VIA_FRAME_POINTER || !region || !region->table)
		return SF_STEP_NOT_MINE;
	rules = sf_table_find(region->table, cursor->regs.pc - 1 - region->bias);
	if (!rules || !counts_from_record(arch, region->table, &rules->cfa) || !sf_read_u64(&cursor->still->memory, record, &fp) ||
	    fp != cursor->regs.r[arch->fp])
		return SF_STEP_NOT_MINE;
	sf_reg_set(&cursor->regs, arch->fp, record);
	return sf_step_by_rules(cursor, region->table, rules, why);
}
