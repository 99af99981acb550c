/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping where no row covers the code: by the frame pointer. It points at a frame record on both
 * architectures: the caller's frame pointer, and the return address behind it.
 *
 * Where a thread stands, or was interrupted, that may not be the frame of this function: it may
 * not have made one yet, have taken it down, or never make one. Then the return address is still
 * bare: on top of the stack, or in the link register. Which it is, is guessed from the code; gdb,
 * too, takes the top of the stack where the pc is in no code at all (a call of NULL).
 *
 * Above a call there is no such doubt, as code that calls and keeps no frame pointer either has rules or cannot be
 * walked. Except where a thread begins: musl's functions there have no rules, and a few words above sp is the return
 * address to the thread's first function, which is known by its code.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

/*
 * How far into a function a pc may be, for the target of a direct call to count as its start.
 * A wrong address on the stack rarely follows a call to just below pc.
 */
#define MAX_FUNCTION_SIZE 65536

#define LONGEST_CALL 8 /* bytes */
#define MAX_WORDS 16 /* of musl's function above the thread's first one: five are saved by what calls main */

/* A place that may be the caller's. */
struct caller {
	uint64_t pc, sp, fp;
	bool is_code;        /* in mapped code */
	bool is_behind_call; /* and a call instruction ends there */
	uint64_t target;     /* of a direct call, else 0 */
};

static void judge(const struct sf_cursor *cursor, struct caller *caller)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);

	caller->pc &= still->arch->code_mask;
	caller->is_code = sf_frame_region(still, caller->pc, false) != NULL;
	caller->is_behind_call =
		caller->is_code &&
		still->arch->is_behind_call(&code, caller->pc, &caller->target);
}

/* The return address with no frame made: below `pushed` bytes, or in the link register. */
static bool read_bare(const struct sf_cursor *cursor, unsigned pushed, struct caller *ret)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_regs *regs = &cursor->regs;
	const uint64_t sp = regs->r[arch->sp];

	*ret = (struct caller){ .fp = regs->r[arch->fp] };
	if (arch->lr != SF_NO_REG) {
		ret->pc = regs->r[arch->lr];
		ret->sp = sp;
		return sf_reg_known(regs, arch->lr);
	}
	ret->sp = sp + pushed + 8;
	return sf_read_u64(&cursor->still->memory, sp + pushed, &ret->pc);
}

/*
 * Whether a frame record leads to code that nobody has called: a program that makes stacks of its own has put the record
 * there, with the place where the first function returns to. Erlang does that for each of its processes.
 */
static bool was_not_called(const struct sf_cursor *cursor)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	const uint64_t pc = cursor->regs.pc;
	uint8_t before[LONGEST_CALL];
	uint64_t target;

	return cursor->via == SF_VIA_FRAME_POINTER && sf_read(&code, before, pc - sizeof(before), sizeof(before)) &&
	       !cursor->still->arch->is_behind_call(&code, pc, &target);
}

/*
 * The psABIs require 0 in a thread's first frame; musl's _start and clone rely on it. A function that keeps no frame pointer
 * has the 0 of its caller's, too. So the 0 is the end only in the function that sets it, and in one that was not called.
 * That is not looked up one byte before.
 */
static bool is_first_frame(const struct sf_cursor *cursor)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);

	if (cursor->exact)
		return false;
	if (cursor->still->arch->clears_fp(&code, cursor->regs.pc))
		return true;
	if (!was_not_called(cursor))
		return false;
	cursor->trace->frames[cursor->trace->n_frames - 1].flags |= SF_FRAME_EXACT;
	return true;
}

/*
 * Whether the frame pointer may lead to another stack, at a lower address: code without rules, which keeps frame
 * pointers, has called code with rules, which gives the register back, on the thread's stack. Erlang's compiled code
 * calls C so. The record must be proved by a call.
 */
static bool may_have_switched(const struct sf_cursor *cursor)
{
	const struct sf_region *region = sf_frame_region(cursor->still, cursor->regs.pc, cursor->exact);

	return !cursor->exact && cursor->via == SF_VIA_ROWS && region && !region->table;
}

/* The frame record that fp points at, if it can; whether it leads to code is not looked at. */
static enum sf_step read_record(const struct sf_cursor *cursor, struct caller *ret,
				enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t fp = cursor->regs.r[arch->fp];
	uint64_t record[2];

	*why = SF_END_REGISTER;
	if (!sf_reg_known(&cursor->regs, arch->fp))
		return SF_STEP_FAILED;
	*why = SF_END_NO_RULE;
	if (fp == 0)
		return is_first_frame(cursor) ? SF_STEP_ROOT : SF_STEP_FAILED;
	if (fp % 8 != 0 || fp > UINT64_MAX - sizeof(record) || (fp < cursor->regs.r[arch->sp] && !may_have_switched(cursor)))
		return SF_STEP_FAILED;
	*why = sf_why_unread(&cursor->still->memory, fp, sizeof(record));
	if (!sf_read(&cursor->still->memory, record, fp, sizeof(record)))
		return SF_STEP_FAILED;
	*why = SF_END_NO_RULE;
	*ret = (struct caller){ .pc = record[1], .sp = fp + sizeof(record), .fp = record[0] };
	if ((record[1] & arch->code_mask) != 0)
		return SF_STEP_TAKEN;
	/* On another stack a 0 proves nothing: Erlang's collector has moved that stack, and its old memory may be anything. */
	return fp < cursor->regs.r[arch->sp] ? SF_STEP_FAILED : SF_STEP_ROOT;
}

/* Nothing was pushed, so the callee-saved registers are still the caller's. */
static enum sf_step take_bare(struct sf_cursor *cursor, const struct caller *caller)
{
	const struct sf_arch *arch = cursor->still->arch;
	uint64_t saved = UINT64_C(1) << arch->sp;

	for (unsigned i = 0; i < arch->n_saved; i++)
		saved |= UINT64_C(1) << arch->saved[i];
	cursor->regs.known &= saved;
	cursor->regs.pc = caller->pc;
	cursor->regs.r[arch->sp] = caller->sp;
	cursor->via = SF_VIA_GUESS;
	cursor->exact = false;
	return SF_STEP_TAKEN;
}

/* The function may have saved other registers anywhere, so only fp and sp are known above it. */
static enum sf_step take_record(struct sf_cursor *cursor, const struct caller *caller)
{
	const struct sf_arch *arch = cursor->still->arch;

	cursor->regs.pc = caller->pc;
	cursor->regs.known = 0;
	sf_reg_set(&cursor->regs, arch->fp, caller->fp);
	sf_reg_set(&cursor->regs, arch->sp, caller->sp);
	/*
	 * With a link register the record may be anywhere in the frame: sp is a lower bound only.
	 */
	if (arch->lr != SF_NO_REG)
		cursor->regs.known &= ~(UINT64_C(1) << arch->sp);
	cursor->via = SF_VIA_FRAME_POINTER;
	cursor->exact = false;
	return SF_STEP_TAKEN;
}

static bool calls_here(const struct sf_cursor *cursor, const struct caller *caller)
{
	return caller->is_behind_call && caller->target != 0 && caller->target <= cursor->regs.pc &&
	       cursor->regs.pc - caller->target < MAX_FUNCTION_SIZE;
}

/* In no code at all: only a call can have led here, and its return address is bare. */
static enum sf_step step_from_nowhere(struct sf_cursor *cursor, enum sf_end *why)
{
	struct caller bare;

	*why = SF_END_NO_CODE;
	if (!cursor->exact || !read_bare(cursor, 0, &bare))
		return SF_STEP_FAILED;
	judge(cursor, &bare);
	return bare.is_behind_call ? take_bare(cursor, &bare) : SF_STEP_FAILED;
}

/* The instruction at pc shows that the frame is not there, so the return address must be bare. */
static bool step_at_edge(struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	struct caller bare;
	uint8_t pushed;

	if (!still->arch->is_frame_edge(&code, cursor->regs.pc, &pushed) ||
	    !read_bare(cursor, pushed, &bare))
		return false;
	judge(cursor, &bare);
	return bare.is_code && take_bare(cursor, &bare) == SF_STEP_TAKEN;
}

/* Where the thread stands or was interrupted: the better of the two, best evidence first. */
static enum sf_step step_exact(struct sf_cursor *cursor, enum sf_end *why)
{
	struct caller bare = { 0 }, record = { 0 };
	enum sf_step step;

	if (step_at_edge(cursor))
		return SF_STEP_TAKEN;
	if (read_bare(cursor, 0, &bare))
		judge(cursor, &bare);
	if (calls_here(cursor, &bare))
		return take_bare(cursor, &bare);
	step = read_record(cursor, &record, why);
	if (step == SF_STEP_TAKEN)
		judge(cursor, &record);
	/* That the register points to a stack is only a supposition here. */
	if (*why == SF_END_OTHER_STACK)
		*why = SF_END_NO_RULE;
	if (record.is_behind_call)
		return take_record(cursor, &record);
	if (bare.is_behind_call)
		return take_bare(cursor, &bare);
	if (record.is_code) {
		take_record(cursor, &record);
		cursor->via = SF_VIA_GUESS;
		return SF_STEP_TAKEN;
	}
	return step == SF_STEP_TAKEN ? SF_STEP_FAILED : step;
}

static bool step_to_first(struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const uint64_t sp = cursor->regs.r[still->arch->sp];
	struct caller first = { 0 };

	if (!still->arch->is_first_call || !sf_reg_known(&cursor->regs, still->arch->sp))
		return false;
	for (unsigned i = 0; i < MAX_WORDS && sf_read_u64(&still->memory, sp + 8 * i, &first.pc); i++) {
		if (!sf_frame_region(still, first.pc, false) || !still->arch->is_first_call(&code, first.pc))
			continue;
		first.sp = sp + 8 * i + 8;
		take_record(cursor, &first);
		cursor->via = SF_VIA_GUESS;
		return true;
	}
	return false;
}

static bool is_above(const struct sf_cursor *cursor, const struct caller *caller)
{
	return caller->sp > cursor->regs.r[cursor->still->arch->sp];
}

static bool is_proved(const struct sf_cursor *cursor, struct caller *caller)
{
	judge(cursor, caller);
	return caller->is_behind_call;
}

/*
 * Above a call. Return addresses are not compared with call instructions: that would cost a read. Those on another stack are.
 */
static enum sf_step step_caller(struct sf_cursor *cursor, enum sf_end *why)
{
	struct caller record = { 0 };
	const enum sf_step step = read_record(cursor, &record, why);

	if (step == SF_STEP_ROOT)
		return step;
	record.pc &= cursor->still->arch->code_mask;
	if (step == SF_STEP_TAKEN && sf_frame_region(cursor->still, record.pc, false) &&
	    (is_above(cursor, &record) || is_proved(cursor, &record)))
		return take_record(cursor, &record);
	return *why == SF_END_NO_RULE && step_to_first(cursor) ? SF_STEP_TAKEN : SF_STEP_FAILED;
}

enum sf_step sf_step_frame_pointer(struct sf_cursor *cursor, const struct sf_region *region,
				   enum sf_end *why)
{
	if (!region)
		return step_from_nowhere(cursor, why);
	return cursor->exact ? step_exact(cursor, why) : step_caller(cursor, why);
}
