/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for a call that lies apart from the code which it serves: behind the call, a jump leads back there. The jump leaves
 * sp alone, so the rules on both sides of it have the same distance to the CFA. OCaml puts its calls of the collector behind
 * the function's last return, and its rules there lack what the code has pushed for handlers (emit_call_gc in
 * asmcomp/amd64/emit.mlp, 4.13). They would take a handler, or any word of the frame, for the return address. The rules of
 * caml_start_program where a handler ends (runtime/amd64.S) are as wrong. Signal-safe.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define SAVES_ALL 200 /* bytes of the frame of a routine that saves all registers, and of no fewer */

/* Such code keeps no registers for its caller, as all that it calls may use them. */
static bool keeps_no_registers(const struct sf_arch *arch, const struct sf_rules *rules)
{
	bool keeps_none = true;

	for (unsigned i = 0; i < arch->n_saved; i++)
		keeps_none = keeps_none && rules->saved[i].how == SF_HOW_SAME;
	return keeps_none;
}

/* The routine that is called saves all registers, or has just begun. So the code of few frames is read. */
static bool may_be_detour(const struct sf_cursor *cursor)
{
	const struct sf_trace *trace = cursor->trace;
	const struct sf_frame *callee = trace->n_frames > 1 ? &trace->frames[trace->n_frames - 2] : NULL;

	return cursor->exact || !callee || callee->flags & SF_FRAME_EXACT ||
	       cursor->regs.r[cursor->still->arch->sp] - callee->sp >= SAVES_ALL;
}

/* Rules that count from sp; NULL: there are none. */
static const struct sf_rules *rules_at(const struct sf_cursor *cursor, const struct sf_region *region, uint64_t pc)
{
	const struct sf_rules *rules = pc >= region->start && pc < region->end ? sf_table_find(region->table, pc - region->bias) : NULL;
	const bool by_sp = rules && rules->cfa.how == SF_HOW_REGISTER_PLUS && rules->cfa.reg == cursor->still->arch->sp;

	return by_sp && rules->ra.how == SF_HOW_AT_CFA ? rules : NULL;
}

/* The code from pc to the return says the same as the rules. */
static bool is_confirmed(const struct sf_cursor *cursor, const struct sf_rules *rules, uint64_t pc)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	struct sf_exit exit;

	return cursor->still->arch->find_exit && cursor->still->arch->find_exit(&code, pc, &exit) && !exit.is_by_fp && !exit.is_half &&
	       !exit.is_guess && !exit.is_kept && exit.size == rules->cfa.value + rules->ra.value;
}

enum sf_step sf_step_detour(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	const struct sf_rules *here, *there;
	uint64_t back;

	if (!region || !region->table || !cursor->still->map->pops_return || !arch->jumps_back || !may_be_detour(cursor))
		return SF_STEP_NOT_MINE;
	here = rules_at(cursor, region, cursor->regs.pc - !cursor->exact);
	if (!here || !keeps_no_registers(arch, here) || !arch->jumps_back(&code, cursor->regs.pc, cursor->exact, &back))
		return SF_STEP_NOT_MINE;
	there = rules_at(cursor, region, back);
	if (!there || there->cfa.value == here->cfa.value)
		return SF_STEP_NOT_MINE;
	*why = SF_END_NO_RULE;
	return is_confirmed(cursor, there, back) ? sf_step_by_rules(cursor, region->table, there, why) : SF_STEP_FAILED;
}
