/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping over managed frames of CoreCLR: bodies by their unwind information, stubs by the return address that lies on top of
 * the stack. Signal-safe.
 */
#include "frozen/coreclr/code.h"
#include "frozen/coreclr/frames.h"
#include "frozen/coreclr/method_id.h"
#include "frozen/coreclr/unwind_info.h"

#include "frozen/frozen.h"

#define RSP 7
#define WORD 8
#define MAX_STUB_WORDS 4     /* that a stub has pushed, and the return address */

static struct sf_frame *frame_of(const struct sf_cursor *cursor)
{
	return &cursor->trace->frames[cursor->trace->n_frames - 1];
}

/* The key: the method's code by its address. Where another method's code comes there later, the id differs. */
static void set_key(const struct sf_coreclr *coreclr, const struct sf_reader *memory, struct sf_frame *frame,
		    const struct sf_clr_range *range, const struct sf_clr_body *body)
{
	frame->kind = range->code == SF_CLR_CODE_PRECOMPILED ? SF_KIND_PRECOMPILED : SF_KIND_JITTED;
	frame->token = body->method_start;
	frame->id = sf_clr_method_id(&coreclr->layout, range, memory, body->method);
	frame->bci = -1;
}

static void set_stub_key(const struct sf_cursor *cursor, uint32_t stub_kind)
{
	struct sf_frame *frame = frame_of(cursor);

	frame->kind = SF_KIND_STUB;
	frame->token = 0;
	frame->id = stub_kind;
	frame->bci = -1;
}

static bool is_return_address(const struct sf_cursor *cursor, uint64_t pc)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint64_t target;

	return sf_code_map_find(cursor->still->map, pc - 1) &&
	       cursor->still->arch->is_behind_call(&code, pc, &target);
}

/* A stub ends with a jump. It may have pushed a few words, and owns nothing else on the stack. */
static enum sf_step step_stub(struct sf_cursor *cursor, enum sf_end *why)
{
	const uint64_t sp = cursor->regs.r[RSP];
	uint64_t pc;

	*why = SF_END_RUNTIME;
	if (!cursor->exact)
		return SF_STEP_FAILED;
	for (unsigned i = 0; i < MAX_STUB_WORDS; i++) {
		if (!sf_read_u64(&cursor->still->memory, sp + i * WORD, &pc))
			break;
		if (!is_return_address(cursor, pc))
			continue;
		cursor->regs.pc = pc;
		cursor->regs.r[RSP] = sp + (i + 1) * WORD;
		cursor->exact = false;
		cursor->via = SF_VIA_RUNTIME;
		return SF_STEP_TAKEN;
	}
	return SF_STEP_FAILED;
}

static bool step_managed(const struct sf_coreclr *coreclr, const struct sf_cursor *cursor, const struct sf_clr_range *range,
			 struct sf_regs *regs, uint64_t *slot_ret)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	struct sf_clr_body body;
	enum sf_end why;

	return sf_clr_find_body(&coreclr->layout, range, &code, regs->pc - 1, &body) == SF_CLR_FOUND_BODY &&
	       sf_clr_unwind(&cursor->still->memory, &body, false, regs, slot_ret, &why);
}

static bool step_native(const struct sf_cursor *cursor, struct sf_regs *regs, uint64_t *slot_ret)
{
	const struct sf_region *region = sf_code_map_find(cursor->still->map, regs->pc - 1);
	struct sf_trace trace = *cursor->trace;
	struct sf_cursor caller = *cursor;
	const struct sf_rules *rules;
	enum sf_end why;

	if (!region || !region->table)
		return false;
	rules = sf_table_find(region->table, regs->pc - 1 - region->bias);
	caller.trace = &trace;
	if (!rules || sf_step_by_rules(&caller, region->table, rules, &why) != SF_STEP_TAKEN)
		return false;
	*regs = caller.regs;
	*slot_ret = regs->r[RSP] - WORD;
	return true;
}

/* Whether the caller to which the cursor has come has a return address itself, in its own frame: at *slot_ret. */
static bool leads_on(const struct sf_coreclr *coreclr, const struct sf_cursor *cursor, uint64_t *slot_ret, uint64_t *pc_ret)
{
	const struct sf_clr_range *range = sf_clr_find_range(coreclr, cursor->regs.pc - 1);
	struct sf_regs regs = cursor->regs;

	if (!(range ? step_managed(coreclr, cursor, range, &regs, slot_ret) : step_native(cursor, &regs, slot_ret)))
		return false;
	*pc_ret = regs.pc;
	return is_return_address(cursor, regs.pc);
}

/*
 * The Thread object has the original of the last return address that was replaced, also when the suspension is over. Then it is
 * taken if the copied stack goes on from there.
 */
static bool take_noted(const struct sf_coreclr *coreclr, struct sf_cursor *cursor, uint64_t slot)
{
	const struct sf_still *still = cursor->still;
	uint64_t caller_slot, caller_pc;
	bool present;

	if (!sf_clr_hijacked_return(coreclr, &still->memory, still->handles[coreclr->runtime.slot], slot, &present,
				    &cursor->regs.pc) ||
	    !is_return_address(cursor, cursor->regs.pc))
		return false;
	return present || (still->flags & SF_STILL_COPY && leads_on(coreclr, cursor, &caller_slot, &caller_pc));
}

/*
 * After a suspension the runtime puts the original back. So the stack has it by now if the frames are still the same: the
 * copied stack goes on from there, and the caller's own return address is the copied one.
 */
static bool take_restored(const struct sf_coreclr *coreclr, struct sf_cursor *cursor, uint64_t slot)
{
	struct sf_reader now = sf_reader_outside(&cursor->still->memory);
	uint64_t caller_slot, caller_pc, pc;

	now.window_size = now.n_others = 0;
	return cursor->still->flags & SF_STILL_COPY && sf_read_u64(&now, slot, &cursor->regs.pc) &&
	       is_return_address(cursor, cursor->regs.pc) && leads_on(coreclr, cursor, &caller_slot, &caller_pc) &&
	       sf_read_u64(&now, caller_slot, &pc) && pc == caller_pc;
}

/*
 * To suspend a thread the runtime replaces the return address of one of its managed frames by that of a routine of its own,
 * which no call instruction precedes. Where the thread runs again since its stack was copied, the suspension may be over, and
 * another one may have begun. False: the original is not to be had.
 */
static bool undo_hijack(const struct sf_coreclr *coreclr, struct sf_cursor *cursor, uint64_t slot)
{
	const struct sf_region *region = sf_code_map_find(cursor->still->map, cursor->regs.pc);

	if (!region || region->runtime || is_return_address(cursor, cursor->regs.pc))
		return true;
	return take_noted(coreclr, cursor, slot) || take_restored(coreclr, cursor, slot);
}

static enum sf_step step_body(const struct sf_coreclr *coreclr, struct sf_cursor *cursor,
			      const struct sf_clr_body *body, enum sf_end *why)
{
	const uint64_t sp = cursor->regs.r[RSP];
	struct sf_cursor caller = *cursor;
	uint64_t slot;

	if (!sf_clr_unwind(&cursor->still->memory, body, cursor->exact, &caller.regs, &slot, why))
		return SF_STEP_FAILED;
	*why = SF_END_STUCK;
	if (caller.regs.r[RSP] <= sp)
		return SF_STEP_FAILED;
	*why = SF_END_RUNTIME;
	if (!caller.regs.pc)
		return SF_STEP_ROOT;
	if (!undo_hijack(coreclr, &caller, slot))
		return SF_STEP_FAILED;
	*cursor = caller;
	cursor->exact = false;
	cursor->via = SF_VIA_RUNTIME;
	return SF_STEP_TAKEN;
}

/*
 * The body that the frame is in. After a hardware fault the runtime makes a frame whose return address is the faulting
 * instruction itself. If that is the first one of its body, the byte before belongs to other code.
 */
static enum sf_clr_found find_body(const struct sf_coreclr *coreclr, struct sf_cursor *cursor,
				   const struct sf_clr_range *range, struct sf_clr_body *ret)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	const uint64_t pc = cursor->regs.pc;
	struct sf_clr_body here;
	enum sf_clr_found found =
		sf_clr_find_body(&coreclr->layout, range, &code, cursor->exact ? pc : pc - 1, ret);

	if (cursor->exact || (found == SF_CLR_FOUND_BODY && pc < ret->end) ||
	    sf_clr_find_body(&coreclr->layout, range, &code, pc, &here) != SF_CLR_FOUND_BODY ||
	    is_return_address(cursor, pc))
		return found;
	*ret = here;
	cursor->exact = true;
	frame_of(cursor)->flags |= SF_FRAME_EXACT;
	return SF_CLR_FOUND_BODY;
}

/*
 * Code of the runtime's memory that is in no range: a helper that it copied there, if it has called none. Where the runtime has
 * listed it since, the ranges are to be read again.
 */
static enum sf_step step_unlisted(const struct sf_coreclr *coreclr, struct sf_cursor *cursor,
				  enum sf_end *why)
{
	const struct sf_reader outside = sf_reader_outside(&cursor->still->memory);
	enum sf_step step;

	*why = SF_END_NO_RULE;
	if (sf_clr_is_listed(coreclr, &outside, cursor->regs.pc - !cursor->exact))
		return SF_STEP_FAILED;
	step = step_stub(cursor, why);

	if (step == SF_STEP_TAKEN) {
		set_stub_key(cursor, SF_CLR_STUB_HELPER);
		return step;
	}
	*why = SF_END_NO_RULE;
	return SF_STEP_NOT_MINE;
}

static enum sf_step step(const struct sf_runtime *runtime, struct sf_cursor *cursor, enum sf_end *why)
{
	const struct sf_coreclr *coreclr = (const struct sf_coreclr *)runtime;
	const uint64_t pc = cursor->regs.pc;
	const struct sf_clr_range *range = sf_clr_find_range(coreclr, cursor->exact ? pc : pc - 1);
	const struct sf_reader outside = sf_reader_outside(&cursor->still->memory);
	struct sf_clr_body body;

	*why = SF_END_RUNTIME;
	if (cursor->still->arch != &sf_arch_x86_64 || !cursor->trace->n_frames)
		return SF_STEP_FAILED;
	if (!range)
		return step_unlisted(coreclr, cursor, why);
	switch (find_body(coreclr, cursor, range, &body)) {
	case SF_CLR_FOUND_BODY:
		set_key(coreclr, &outside, frame_of(cursor), range, &body);
		return step_body(coreclr, cursor, &body, why);
	case SF_CLR_FOUND_STUB:
		set_stub_key(cursor, body.stub_kind);
		return step_stub(cursor, why);
	case SF_CLR_FOUND_UNREAD:
		*why = SF_END_MEMORY;
		break;
	case SF_CLR_FOUND_NOTHING:
		*why = SF_END_NO_RULE;
		break;
	}
	set_stub_key(cursor, SF_CLR_STUB_UNKNOWN);
	return SF_STEP_FAILED;
}

bool sf_clr_key_frame(const struct sf_coreclr *coreclr, const struct sf_reader *memory, struct sf_frame *frame)
{
	const uint64_t pc = frame->pc;
	const struct sf_clr_range *range = sf_clr_find_range(coreclr, pc);
	struct sf_clr_body body;

	if (range && sf_clr_find_body(&coreclr->layout, range, memory, pc, &body) == SF_CLR_FOUND_BODY &&
	    (frame->flags & SF_FRAME_EXACT || body.start == pc)) {
		frame->flags |= SF_FRAME_EXACT;
	} else {
		range = sf_clr_find_range(coreclr, pc - 1);
		if (!range || sf_clr_find_body(&coreclr->layout, range, memory, pc - 1, &body) != SF_CLR_FOUND_BODY)
			return false;
	}
	frame->runtime = (uint8_t)(coreclr->runtime.slot + 1);
	set_key(coreclr, memory, frame, range, &body);
	return true;
}

const struct sf_coreclr *sf_coreclr_of(const struct sf_code_map *map)
{
	return sf_code_map_runtime_of(map, &sf_coreclr_ops);
}

/* The frames that are true. Stubs jump: where one seems to have called, its address is none to return to. */
static uint32_t n_true_frames(const struct sf_trace *trace)
{
	const struct sf_frame *last = trace->n_frames ? &trace->frames[trace->n_frames - 1] : NULL;

	return trace->n_frames - (trace->n_frames > 1 && last->kind == SF_KIND_STUB && !(last->flags & SF_FRAME_EXACT));
}

static bool resume(const struct sf_runtime *runtime, struct sf_cursor *cursor)
{
	const struct sf_coreclr *coreclr = (const struct sf_coreclr *)runtime;
	struct sf_trace *trace = cursor->trace;
	const uint32_t n = n_true_frames(trace);
	const uint64_t above = n ? trace->frames[n - 1].sp : 0;

	if (!sf_clr_resume(coreclr, cursor, cursor->still->handles[runtime->slot], above))
		return false;
	trace->n_frames = n;
	return true;
}

static bool is_thread(const struct sf_runtime *runtime, const struct sf_reader *memory,
		      uint64_t handle, int32_t tid)
{
	const struct sf_coreclr *coreclr = (const struct sf_coreclr *)runtime;
	uint64_t found;

	return sf_clr_get(&coreclr->layout, memory, SF_CLR_THREAD_OS_ID, handle, &found) &&
	       found == (uint64_t)tid;
}

const struct sf_runtime_ops sf_coreclr_ops = {
	.find = sf_clr_find_region,
	.step = step,
	.resume = resume,
	.resumes_by_stack = true,
	.is_thread = is_thread,
};
