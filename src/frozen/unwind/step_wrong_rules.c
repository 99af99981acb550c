/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steppers for code whose rules are wrong where it stands, or need more than they say: a throw, a call that lies apart, a
 * frame that the caller makes for the function which it calls. Signal-safe. They come before the stepper that takes rules as
 * they are (step_rows.c). frozen/wrong_rules_x86_64.c knows the code.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

/*
 * --- a throw ---
 *
 * Code that throws to a handler on the same stack, as OCaml's does, where sp is the handler's already. The rules there still
 * count from the sp of the function that throws. They would lead to words of the handler's function, some of which are return
 * addresses of calls further out.
 */

/* Where the handler's code begins. */
static enum sf_step find_handler(const struct sf_cursor *cursor, const struct sf_throw *throw, struct sf_regs *ret, enum sf_end *why)
{
	const struct sf_reader *memory = &cursor->still->memory;
	const unsigned sp = cursor->still->arch->sp;
	const uint64_t at = ret->r[sp] + throw->pushed;

	*why = SF_END_REGISTER;
	if (throw->reg != SF_NO_REG) {
		ret->pc = ret->r[throw->reg];
		return sf_reg_known(ret, throw->reg) ? SF_STEP_TAKEN : SF_STEP_FAILED;
	}
	*why = sf_why_unread(memory, at, sizeof(ret->pc));
	ret->r[sp] = at + sizeof(ret->pc);
	return sf_read_u64(memory, at, &ret->pc) ? SF_STEP_TAKEN : SF_STEP_FAILED;
}

/* Nothing calls the handler. All registers but sp are there what they are at the throw. */
enum sf_step sf_step_throw(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	struct sf_regs regs = cursor->regs;
	struct sf_throw throw;

	if (!cursor->exact || !region || !cursor->still->map->pops_return || !arch->is_in_throw ||
	    !arch->is_in_throw(&code, regs.pc, &throw))
		return SF_STEP_NOT_MINE;
	if (find_handler(cursor, &throw, &regs, why) == SF_STEP_FAILED)
		return SF_STEP_FAILED;
	*why = SF_END_NO_CODE;
	if (!sf_frame_region(cursor->still, regs.pc, true))
		return SF_STEP_FAILED;
	cursor->regs = regs;
	cursor->via = SF_VIA_HANDLER;
	return SF_STEP_TAKEN;
}

#define MAX_FUNCTION 2048 /* bytes of a function that leaves for a handler: libgcc's have up to 930 */

static bool is_leaving(const struct sf_cursor *cursor)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);

	return arch->is_leaving && arch->is_leaving(&code, cursor->regs.pc, cursor->exact);
}

/* Whether a call before `caller` goes to the function that pc is in, itself or by a PLT stub. */
static bool is_called_by(const struct sf_cursor *caller, uint64_t pc)
{
	const struct sf_arch *arch = caller->still->arch;
	const struct sf_reader code = sf_reader_outside(&caller->still->memory);
	uint64_t target, slot;

	if (!sf_frame_region(caller->still, caller->regs.pc, false) || !arch->is_behind_call(&code, caller->regs.pc, &target) || !target)
		return false;
	if (arch->jump_slot && arch->jump_slot(&code, target, &slot) && !sf_read_u64(&code, slot, &target))
		return false;
	return pc - target < MAX_FUNCTION;
}

/*
 * libgcc's uw_install_context_1 (libgcc/unwind-dw2.c) copies the registers of the handler's frame, and at last the return address
 * of that frame, over those that _Unwind_RaiseException has saved. So no register is known then, and the address counts only if
 * its call goes to this function.
 */
enum sf_step sf_step_leaving(struct sf_cursor *cursor, const struct sf_table *table, const struct sf_rules *rules, enum sf_end *why)
{
	const unsigned sp = cursor->still->arch->sp;
	struct sf_cursor caller = *cursor;
	enum sf_step step;

	if (!is_leaving(cursor))
		return sf_step_by_rules(cursor, table, rules, why);
	step = sf_step_by_rules(&caller, table, rules, why);
	if (step == SF_STEP_FAILED)
		return step;
	*why = SF_END_NO_RULE;
	if (step != SF_STEP_TAKEN || !is_called_by(&caller, cursor->regs.pc))
		return SF_STEP_FAILED;
	caller.regs.known = UINT64_C(1) << sp;
	caller.passed = 0;
	*cursor = caller;
	return SF_STEP_TAKEN;
}

/*
 * --- a call that lies apart from the code which it serves ---
 *
 * Behind the call, a jump leads back there. The jump leaves sp alone, so the rules on both sides of it have the same distance
 * to the CFA. OCaml puts its calls of the collector behind the function's last return, and its rules there lack what the code
 * has pushed for handlers (emit_call_gc in asmcomp/amd64/emit.mlp, 4.13). They would take a handler, or any word of the frame,
 * for the return address. The rules of caml_start_program where a handler ends (runtime/amd64.S) are as wrong.
 */

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

	return cursor->still->arch->find_exit && cursor->still->arch->find_exit(&code, pc, &exit) && sf_exit_is_by_size(&exit) &&
	       !exit.is_guess && exit.size == rules->cfa.value + rules->ra.value;
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

/*
 * --- code that makes the frame of the function which it calls ---
 *
 * So do calls of Lisp in SBCL (call_into_lisp in src/runtime/x86-64-assem.S). At the call the frame pointer points at that
 * frame's record, which has the frame pointer of the code itself, and the rules count the CFA from the word there. Where the
 * function that was called was left by its frame pointer, the register has that word already. With it the rules would pass
 * over a frame.
 */

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
