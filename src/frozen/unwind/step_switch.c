/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for functions that call on another stack: Go's systemstack and morestack, which run a function on the system
 * thread's stack (g0), and asmcgocall. Signal-safe. Their rules count from sp, and would take what lies at the top of g0 for a
 * return address: 0, or that of a call long ago.
 *
 * The stack that was left is found by the frame pointer. These functions keep it, and every Go function with a frame
 * saves it. So the chain of frame records leads from g0 to the record of the goroutine's innermost function that has
 * one. Below that record is the return address to the function that called. It is proven by the call before it, which
 * is one of this function, and by the rules: one or two steps from it end at the record.
 *
 * mcall gives the goroutine up. It calls the scheduler, and is the scheduler's first frame. The first frame of a goroutine is
 * goexit: its return address was stored there by hand, one byte behind its start.
 *
 * A function with a frame of its own may go to g0, too: the clock calls the vDSO there. Its frame record lies on the
 * stack that it left, below its return address, and the frame pointer leads to it.
 *
 * Where the stack that was left was not copied, the addresses that the kernel found there lead on (step_chain.c).
 */
#include "frozen/unwind/chain.h"
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define WORD 8
#define BARE 16                     /* bytes from sp to behind the return address in a function with one pushed word */
#define MAX_CHAIN 512               /* frame records on one stack */
#define MAX_STACK ((uint64_t)1 << 20)
#define MAX_SEARCHED 4096           /* bytes below the record */
#define ALIGNMENT 16                /* of Go's functions, at the least */

/* The lowest sp of the frames on the stack that ends at `top`. */
static uint64_t lowest_sp(const struct sf_trace *trace, uint64_t top)
{
	uint64_t lowest = top;

	for (uint32_t i = trace->n_frames; i-- > 0 && trace->frames[i].sp <= lowest && top - trace->frames[i].sp < MAX_STACK;)
		lowest = trace->frames[i].sp;
	return lowest;
}

/* Follows the records up to the first one that is not on the stack from `lowest` to `top`. False: a record cannot be read. */
static bool leave_stack(const struct sf_reader *memory, uint64_t lowest, uint64_t top, uint64_t *fp)
{
	for (unsigned i = 0; i < MAX_CHAIN && *fp >= lowest && *fp < top; i++) {
		lowest = *fp + 1;
		if (*fp % WORD != 0 || !sf_read_u64(memory, *fp, fp))
			return false;
	}
	return *fp != 0 && *fp % WORD == 0;
}

static bool step_once(struct sf_cursor *cursor)
{
	const struct sf_region *region = sf_frame_region(cursor->still, cursor->regs.pc, false);
	const struct sf_rules *rules = region && region->table ?
		sf_table_find(region->table, cursor->regs.pc - region->bias - 1) : NULL;
	enum sf_end why;

	return rules && sf_step_by_rules(cursor, region->table, rules, &why) == SF_STEP_TAKEN;
}

/* Whether that is this function, or one that only jumps here. */
static bool calls_here(const struct sf_cursor *cursor, uint64_t target)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const struct sf_region *region = sf_frame_region(still, cursor->regs.pc, cursor->exact);
	struct sf_row_range row;

	if (!target || !region || !sf_table_range(region->table, cursor->regs.pc - region->bias - !cursor->exact, &row))
		return false;
	return target == row.start + region->bias ||
	       still->arch->jumps_to(&code, target, row.start + region->bias);
}

bool sf_go_stand_behind_call(const struct sf_cursor *cursor, uint64_t at, uint64_t fp, uint64_t *target_ret, struct sf_cursor *ret)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);

	*ret = *cursor;
	ret->exact = false;
	ret->regs.known = 0;
	sf_reg_set(&ret->regs, still->arch->sp, at + WORD);
	sf_reg_set(&ret->regs, still->arch->fp, fp);
	return sf_read_u64(&still->memory, at, &ret->regs.pc) && sf_frame_region(still, ret->regs.pc, false) &&
	       still->arch->is_behind_call(&code, ret->regs.pc, target_ret);
}

bool sf_go_steps_to_record(struct sf_cursor *cursor, uint64_t fp)
{
	return step_once(cursor) && cursor->regs.r[cursor->still->arch->sp] == fp + 2 * WORD;
}

/*
 * Whether the word at `at` is the return address of a call of this function, from which the rules lead to the record at
 * `fp` in one step or two.
 */
static bool leads_to_record(const struct sf_cursor *cursor, uint64_t at, uint64_t fp, struct sf_cursor *ret)
{
	struct sf_cursor above;
	uint64_t target;

	if (!sf_go_stand_behind_call(cursor, at, fp, &target, ret) || !calls_here(cursor, target))
		return false;
	above = *ret;
	return step_once(&above) &&
	       (above.regs.r[above.still->arch->sp] == fp + 2 * WORD || sf_go_steps_to_record(&above, fp));
}

/* The nearest word below the record. */
static bool find_caller(const struct sf_cursor *cursor, uint64_t fp, struct sf_cursor *ret)
{
	for (uint64_t below = WORD; below <= MAX_SEARCHED; below += WORD) {
		if (leads_to_record(cursor, fp - below, fp, ret))
			return true;
	}
	return false;
}

static bool is_switch(const struct sf_cursor *cursor, bool *gives_up_ret)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);

	return arch->switches_stack && arch->switches_stack(&code, cursor->regs.pc, cursor->exact, gives_up_ret);
}

/* No call is one byte long. */
bool sf_is_goexit(const struct sf_still *still, uint64_t pc)
{
	const struct sf_region *region = sf_frame_region(still, pc, false);
	struct sf_row_range row;

	return region && region->table && sf_table_range(region->table, pc - region->bias - 1, &row) && row.start == pc - region->bias - 1 &&
	       still->arch->lr == SF_NO_REG && row.rules->cfa.value == 8;
}

/*
 * Go's asmcgocall notes the start of systemstack_switch as the place where the goroutine goes on. A function of Go's
 * that C calls is shown this as its return address. A return address lies behind a call; this one is the function's
 * first byte, with no frame yet. The start of the trampoline to which a signal's handler returns is no such place.
 */
static bool is_noted_start(const struct sf_cursor *cursor, const struct sf_region *region, struct sf_row_range *ret)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	const uint64_t address = cursor->regs.pc - region->bias;
	uint64_t target;

	return address % ALIGNMENT == 0 && sf_table_range(region->table, address, ret) && ret->start == address &&
	       ret->rules->cfa.value == 8 && ret->rules->cfa.reg == cursor->still->arch->sp &&
	       cursor->still->arch->lr == SF_NO_REG &&
	       !cursor->still->arch->is_behind_call(&code, cursor->regs.pc, &target) &&
	       !sf_is_sigreturn(cursor->still, cursor->regs.pc);
}

static enum sf_step step_from_start(struct sf_cursor *cursor, const struct sf_region *region, const struct sf_rules *rules,
				    enum sf_end *why)
{
	cursor->trace->frames[cursor->trace->n_frames - 1].flags |= SF_FRAME_EXACT;
	return sf_step_by_rules(cursor, region->table, rules, why);
}

/* From sp to behind the return address, as the rules have it; 0: they do not count from sp. */
static uint64_t frame_size(const struct sf_cursor *cursor, const struct sf_region *region)
{
	const struct sf_rules *rules = sf_table_find(region->table, cursor->regs.pc - region->bias - !cursor->exact);

	return rules && rules->cfa.reg == cursor->still->arch->sp && rules->cfa.value > 0 ? (uint64_t)rules->cfa.value : 0;
}

/* The rules of a Go function do not say where the frame pointer was saved. Those of another file's functions do. */
static bool called_another_file(const struct sf_trace *trace)
{
	return trace->n_frames > 1 &&
	       trace->frames[trace->n_frames - 2].image != trace->frames[trace->n_frames - 1].image;
}

/* A function with a frame whose record is not where its rules have it. */
static bool has_left_its_record(const struct sf_cursor *cursor, uint64_t size)
{
	const struct sf_arch *arch = cursor->still->arch;

	return size > BARE && (cursor->exact || called_another_file(cursor->trace)) &&
	       sf_reg_known(&cursor->regs, arch->fp) &&
	       cursor->regs.r[arch->fp] + 2 * WORD != cursor->regs.r[arch->sp] + size;
}

/* Where the thread stands; functions that call with no frame, or with one pushed word; and those whose record is elsewhere. */
static bool may_switch(const struct sf_cursor *cursor, uint64_t size)
{
	return cursor->exact || (size && size <= BARE) || has_left_its_record(cursor, size);
}

/* To the function that called one with a frame of its own. */
static enum sf_step follow_record(struct sf_cursor *cursor, enum sf_end *why)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const uint64_t record = cursor->regs.r[still->arch->fp];
	uint64_t words[2], target;

	*why = SF_END_NO_RULE;
	if (record % WORD != 0)
		return SF_STEP_FAILED;
	if (!sf_read(&still->memory, words, record, sizeof(words))) {
		*why = sf_why_unread(&still->memory, record, sizeof(words));
		return sf_chain_follow(cursor, why);
	}
	if (!sf_frame_region(still, words[1], false) || !still->arch->is_behind_call(&code, words[1], &target))
		return SF_STEP_FAILED;
	cursor->regs.known = 0;
	cursor->regs.pc = words[1];
	sf_reg_set(&cursor->regs, still->arch->fp, words[0]);
	sf_reg_set(&cursor->regs, still->arch->sp, record + 2 * WORD);
	cursor->exact = false;
	cursor->via = SF_VIA_FRAME_POINTER;
	return SF_STEP_TAKEN;
}

/* To the function that called, where the stack that it is on can be read. */
static enum sf_step cross(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader *memory = &cursor->still->memory;
	const uint64_t top = cursor->regs.r[arch->sp];
	uint64_t fp = cursor->regs.r[arch->fp], word;
	struct sf_cursor caller;

	if (!leave_stack(memory, lowest_sp(cursor->trace, top), top, &fp))
		return SF_STEP_FAILED;
	if (!sf_read_u64(memory, fp, &word)) {
		*why = sf_why_unread(memory, fp, sizeof(word));
		return *why == SF_END_OTHER_STACK ? sf_chain_cross(cursor, region, fp) : SF_STEP_FAILED;
	}
	if (!find_caller(cursor, fp, &caller))
		return SF_STEP_FAILED;
	*cursor = caller;
	cursor->via = SF_VIA_FRAME_POINTER;
	return SF_STEP_TAKEN;
}

enum sf_step sf_step_switch(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	struct sf_row_range start;
	uint64_t size;
	uint8_t byte;
	bool gives_up;

	if (!cursor->exact && is_noted_start(cursor, region, &start))
		return step_from_start(cursor, region, start.rules, why);
	size = frame_size(cursor, region);
	if (!may_switch(cursor, size))
		return SF_STEP_NOT_MINE;
	*why = SF_END_MEMORY;
	if (!cursor->exact && !sf_read(&code, &byte, cursor->regs.pc - 1, 1))
		return SF_STEP_FAILED;
	if (!cursor->exact && sf_is_goexit(cursor->still, cursor->regs.pc))
		return SF_STEP_ROOT;
	if (cursor->chain)
		return SF_STEP_NOT_MINE;
	if (!is_switch(cursor, &gives_up))
		return SF_STEP_NOT_MINE;
	if (gives_up)
		return SF_STEP_ROOT;
	*why = SF_END_REGISTER;
	if (!sf_reg_known(&cursor->regs, cursor->still->arch->fp))
		return SF_STEP_FAILED;
	if (has_left_its_record(cursor, size))
		return follow_record(cursor, why);
	*why = SF_END_NO_RULE;
	return cross(cursor, region, why);
}
