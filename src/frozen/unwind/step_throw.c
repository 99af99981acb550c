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
