/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for code that throws to a handler on the same stack, as OCaml's does, where sp is the handler's already. The rules
 * there still count from the sp of the function that throws. They would lead to words of the handler's function, some of which
 * are return addresses of calls further out. Signal-safe.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

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
