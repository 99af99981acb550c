/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping by the instructions of the function, where no row covers it. Signal-safe. The code from pc to a return
 * shows how many bytes lie between sp and the return address, or that the frame pointer leads there (struct sf_exit). A
 * return address counts only if a call stands before it.
 *
 * Where a frame pointer led to code in no file, the frame is left to the next stepper: code that a runtime made keeps frame
 * pointers, and reading the code of each frame would cost too much. Where it led to code in a file, that function may have left its
 * caller's frame pointer in the register: in programs by FreePascal only some functions have frame pointers, as those that make
 * system calls.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define MAX_JUMPS 4 /* to unknown places, behind which the code is read on */
#define MAX_ALIGNED ((uint64_t)1 << 20) /* bytes that a function takes from its stack */

static bool is_return_address(const struct sf_cursor *cursor, uint64_t pc)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	uint64_t target;

	return sf_frame_region(still, pc, false) && still->arch->is_behind_call(&code, pc, &target);
}

/*
 * Where registers other than fp and sp were saved was not looked at. A function without a frame has saved none: its caller has
 * those that it has, as debuggers take it, too. Routines in assembly keep their old sp in any register.
 */
static enum sf_step take(struct sf_cursor *cursor, uint64_t pc, uint64_t sp, enum sf_via via)
{
	const struct sf_arch *arch = cursor->still->arch;
	const bool has_frame = sp != cursor->regs.r[arch->sp] + 8;

	if (has_frame)
		cursor->regs.known &= UINT64_C(1) << arch->fp;
	cursor->regs.pc = pc;
	sf_reg_set(&cursor->regs, arch->sp, sp);
	cursor->via = (uint8_t)via;
	cursor->exact = false;
	return SF_STEP_TAKEN;
}

/* The old sp of a function that has aligned its stack, and has kept that sp somewhere. */
static bool is_old_sp(const struct sf_cursor *cursor, uint64_t kept)
{
	return kept % 8 == 0 && kept - cursor->regs.r[cursor->still->arch->sp] <= MAX_ALIGNED; /* below sp the difference is larger still */
}

/* A copy that ends below the word is too short: a longer one may show the caller. */
static enum sf_step read_word(const struct sf_cursor *cursor, uint64_t at, uint64_t *ret, enum sf_end *why)
{
	const struct sf_reader *memory = &cursor->still->memory;

	if (sf_read_u64(memory, at, ret))
		return SF_STEP_TAKEN;
	*why = sf_why_unread(memory, at, sizeof(*ret));
	return *why == SF_END_COPY ? SF_STEP_FAILED : SF_STEP_NOT_MINE;
}

static enum sf_step step_by_sp(struct sf_cursor *cursor, uint64_t sp, const struct sf_exit *exit, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const uint64_t at = sp + (uint64_t)(uint32_t)exit->size;
	const bool is_saved = exit->saved_fp >= 0 || exit->is_half;
	uint64_t pc, fp = 0, saved = sp + (uint64_t)(uint32_t)exit->saved_fp;
	const enum sf_step step = read_word(cursor, at, &pc, why);

	if (step != SF_STEP_TAKEN)
		return step;
	if (exit->is_half)
		saved = cursor->regs.r[arch->fp];
	if (!is_return_address(cursor, pc) || (exit->is_half && !sf_reg_known(&cursor->regs, arch->fp)) ||
	    (is_saved && !sf_read_u64(&cursor->still->memory, saved, &fp)))
		return SF_STEP_NOT_MINE;
	if (is_saved)
		sf_reg_set(&cursor->regs, arch->fp, fp);
	return take(cursor, pc, exit->is_half ? saved + 16 : at + 8, exit->is_guess ? SF_VIA_GUESS : SF_VIA_CODE);
}

static enum sf_step step_by_fp(struct sf_cursor *cursor, const struct sf_exit *exit)
{
	const struct sf_arch *arch = cursor->still->arch;
	const unsigned reg = exit->behind ? exit->behind : arch->fp;
	uint64_t record[2], fp = cursor->regs.r[reg] - (exit->behind ? sizeof(record) : 0);

	if (!sf_reg_known(&cursor->regs, reg) ||
	    (exit->is_ahead && !sf_read_u64(&cursor->still->memory, fp, &fp)) || fp % 8 != 0 || fp < cursor->regs.r[arch->sp] ||
	    !sf_read(&cursor->still->memory, record, fp, sizeof(record)) || !is_return_address(cursor, record[1]))
		return SF_STEP_NOT_MINE;
	sf_reg_set(&cursor->regs, arch->fp, record[0]);
	return take(cursor, record[1], fp + sizeof(record), SF_VIA_FRAME_POINTER);
}

/* While arguments are still on the stack, the caller's sp is further up: how far is not known. */
static enum sf_step step_by_held(struct sf_cursor *cursor, const struct sf_exit *exit)
{
	const unsigned sp = cursor->still->arch->sp;
	const uint64_t pc = cursor->regs.r[exit->held];

	if (!sf_reg_known(&cursor->regs, exit->held) || !is_return_address(cursor, pc))
		return SF_STEP_NOT_MINE;
	take(cursor, pc, cursor->regs.r[sp], SF_VIA_CODE);
	if (!exit->has_given)
		cursor->regs.known &= ~(UINT64_C(1) << sp);
	return SF_STEP_TAKEN;
}

/*
 * By the register in which the function keeps its old sp, while its own stack is aligned. That the code which takes it back
 * is this function's is a guess.
 */
static enum sf_step step_by_kept_sp(struct sf_cursor *cursor, const struct sf_reader *code, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	struct sf_exit exit;
	uint64_t behind, kept;
	unsigned reg;

	if (!(cursor->exact || cursor->via == SF_VIA_CODE) || !arch->find_kept_sp ||
	    !arch->find_kept_sp(code, cursor->regs.pc, &reg, &behind) || !sf_reg_known(&cursor->regs, reg) ||
	    !arch->find_exit(code, behind, &exit) || !sf_exit_is_by_size(&exit))
		return SF_STEP_NOT_MINE;
	kept = cursor->regs.r[reg];
	if (!is_old_sp(cursor, kept))
		return SF_STEP_NOT_MINE;
	exit.is_guess = true;
	return step_by_sp(cursor, kept, &exit, why);
}

/* By a frame pointer that leads on, in no file. 0 may be that of a caller further up, where this function keeps none. */
static bool is_led_to(const struct sf_cursor *cursor, const struct sf_region *region)
{
	const unsigned fp = cursor->still->arch->fp;

	return !region->image && !cursor->exact && cursor->via == SF_VIA_FRAME_POINTER && sf_reg_known(&cursor->regs, fp) &&
	       cursor->regs.r[fp] != 0;
}

/* By the old sp in the aligned stack. */
static enum sf_step step_by_stored_sp(struct sf_cursor *cursor, uint64_t sp, const struct sf_exit *exit, enum sf_end *why)
{
	const uint64_t at = sp + (uint64_t)(uint32_t)exit->kept_sp;
	uint64_t kept;
	const enum sf_step step = read_word(cursor, at, &kept, why);

	if (step != SF_STEP_TAKEN)
		return step;
	return is_old_sp(cursor, kept) && kept > at ? step_by_sp(cursor, kept, exit, why) : SF_STEP_NOT_MINE;
}

static enum sf_step step_by_exit(struct sf_cursor *cursor, uint64_t sp, const struct sf_exit *exit, enum sf_end *why)
{
	if (exit->is_by_fp)
		return step_by_fp(cursor, exit);
	if (exit->is_held)
		return step_by_held(cursor, exit);
	return exit->is_kept ? step_by_stored_sp(cursor, sp, exit, why) : step_by_sp(cursor, sp, exit, why);
}

/*
 * Where no return address lies at the end of the frame, a jump to an unknown place stays in the function: it goes to a case of
 * a switch, or to the next block that an emulator has made. The code behind it has the same frame.
 */
static enum sf_step step_by_code(struct sf_cursor *cursor, const struct sf_reader *code, enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	uint64_t pc = cursor->regs.pc, sp = cursor->regs.r[arch->sp];
	enum sf_step step = SF_STEP_NOT_MINE;
	struct sf_exit exit;

	for (unsigned i = 0; i < MAX_JUMPS && step == SF_STEP_NOT_MINE && pc; i++) {
		if (!arch->find_exit(code, pc, &exit))
			return i == 0 ? step_by_kept_sp(cursor, code, why) : SF_STEP_NOT_MINE;
		exit.is_guess |= i > 0;
		step = step_by_exit(cursor, sp, &exit, why);
		pc = exit.jump;
		sp += (uint64_t)(uint32_t)exit.size;
	}
	return step;
}

/* How other code of the same language is left, if this may be code of it. */
static bool find_common_exit(const struct sf_cursor *cursor, const struct sf_reader *code, struct sf_exit *ret)
{
	const struct sf_still *still = cursor->still;
	const struct sf_region *region;
	int32_t least;
	uint64_t pc;

	if (!still->arch->common_code || !still->arch->common_code(code, &cursor->regs, &pc, &least))
		return false;
	region = sf_frame_region(still, pc, true);
	return region && region->image && still->arch->find_exit(code, pc, ret) && sf_exit_is_by_size(ret) && !ret->is_guess &&
	       ret->size >= least;
}

/*
 * That this is code of the language is said by the return address far up. It is looked at first, since stacks of such threads
 * have return addresses of earlier calls, too, to which a guess may lead. Around a call the code aligns sp.
 */
static enum sf_step step_by_common_code(struct sf_cursor *cursor, const struct sf_reader *code, enum sf_end *why)
{
	const uint64_t sp = cursor->regs.r[cursor->still->arch->sp];
	enum sf_step step;
	struct sf_exit exit;

	if (!find_common_exit(cursor, code, &exit))
		return SF_STEP_NOT_MINE;
	step = step_by_sp(cursor, sp, &exit, why);
	return step == SF_STEP_NOT_MINE ? step_by_sp(cursor, sp + 8, &exit, why) : step;
}

enum sf_step sf_step_code(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	enum sf_step step;

	if (!region || !still->arch->find_exit || !sf_reg_known(&cursor->regs, still->arch->sp) ||
	    is_led_to(cursor, region))
		return SF_STEP_NOT_MINE;
	step = step_by_common_code(cursor, &code, why);
	return step == SF_STEP_NOT_MINE ? step_by_code(cursor, &code, why) : step;
}
