/* SPDX-License-Identifier: Apache-2.0 */
/* Continuing a walk by a thread's explicit frames, and return addresses that a suspension replaced. Signal-safe. */
#include "frozen/coreclr/frames.h"

#include "frozen/coreclr/code.h"

#include "frozen/frozen.h"

#define RBX 3
#define RBP 6
#define RSP 7
#define WORD 8
#define MAX_FRAMES 512
#define MAX_BETWEEN 16384       /* bytes of a stack that are searched for a frame */
#define END_OF_FRAMES UINT64_MAX
#define HIJACKED 0x80u          /* Thread.State: TS_Hijacked (src/coreclr/vm/threads.h) */
#define THREAD_WORDS 128        /* of the Thread object that are searched */

/* Windows' CONTEXT for x86-64, from Rbx on. */
#define CONTEXT_START 0x90
#define CONTEXT_WORDS 14

static const struct {
	uint8_t at, reg;        /* index of the word, DWARF's number */
} context_regs[] = {
	{ 0, RBX }, { 1, RSP }, { 2, RBP }, { 9, 12 }, { 10, 13 }, { 11, 14 }, { 12, 15 },
};

enum how { CALL, CONTEXT, FAULT, THROW, BLOCK, HIJACK };

static const uint8_t hows[SF_CLR_N_FRAMES] = {
#define X(name, global, how) how,
	SF_CLR_FRAMES(X)
#undef X
};

/* The registers that a frame restores. */
struct restored {
	struct sf_regs regs;
	bool exact;
};

/* One look at a thread's frames. */
struct looking {
	const struct sf_coreclr *coreclr;
	const struct sf_reader *memory;
};

static bool get(const struct looking *look, enum sf_clr_field field, uint64_t base, uint64_t *ret)
{
	return sf_clr_get(&look->coreclr->layout, look->memory, field, base, ret);
}

static bool restore_call(const struct looking *look, uint64_t frame, struct restored *ret)
{
	uint64_t sp, fp;

	if (!get(look, SF_CLR_CALL_RETURN, frame, &ret->regs.pc) || !ret->regs.pc ||
	    !get(look, SF_CLR_CALL_SP, frame, &sp) || !get(look, SF_CLR_CALL_FP, frame, &fp))
		return false;
	sf_reg_set(&ret->regs, RSP, sp);
	sf_reg_set(&ret->regs, RBP, fp);
	return true;
}

static bool restore_context(const struct looking *look, uint64_t context, struct restored *ret)
{
	uint64_t words[CONTEXT_WORDS];

	if (!sf_read(look->memory, words, context + CONTEXT_START, sizeof(words)))
		return false;
	for (size_t i = 0; i < sizeof(context_regs) / sizeof(context_regs[0]); i++)
		sf_reg_set(&ret->regs, context_regs[i].reg, words[context_regs[i].at]);
	ret->regs.pc = words[CONTEXT_WORDS - 1];
	ret->exact = true;
	return true;
}

/* CalleeSavedRegisters at `saved`. */
static bool restore_saved(const struct looking *look, uint64_t saved, struct restored *ret)
{
	static const struct {
		uint8_t field, reg;
	} regs[] = {
		{ SF_CLR_SAVED_R12, 12 }, { SF_CLR_SAVED_R13, 13 }, { SF_CLR_SAVED_R14, 14 },
		{ SF_CLR_SAVED_R15, 15 }, { SF_CLR_SAVED_RBX, RBX }, { SF_CLR_SAVED_RBP, RBP },
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		if (!get(look, regs[i].field, saved, &value))
			return false;
		sf_reg_set(&ret->regs, regs[i].reg, value);
	}
	return true;
}

static bool restore_block(const struct looking *look, uint64_t frame, struct restored *ret)
{
	const struct sf_clr_layout *layout = &look->coreclr->layout;
	uint64_t block;

	if (!layout->sizes[SF_CLR_SIZE_BLOCK] || !sf_clr_has(layout, SF_CLR_BLOCK_SAVED) ||
	    !get(look, SF_CLR_FRAMED_BLOCK, frame, &block) ||
	    !get(look, SF_CLR_BLOCK_RETURN, block, &ret->regs.pc) ||
	    !restore_saved(look, block + layout->fields[SF_CLR_BLOCK_SAVED], ret))
		return false;
	sf_reg_set(&ret->regs, RSP, block + layout->sizes[SF_CLR_SIZE_BLOCK]);
	return true;
}

static bool restore_hijack(const struct looking *look, uint64_t frame, struct restored *ret)
{
	const struct sf_clr_layout *layout = &look->coreclr->layout;
	uint64_t args;

	if (!layout->sizes[SF_CLR_SIZE_ARGS] || !sf_clr_has(layout, SF_CLR_ARGS_SAVED) ||
	    !get(look, SF_CLR_HIJACK_RETURN, frame, &ret->regs.pc) ||
	    !get(look, SF_CLR_HIJACK_ARGS, frame, &args) ||
	    !restore_saved(look, args + layout->fields[SF_CLR_ARGS_SAVED], ret))
		return false;
	sf_reg_set(&ret->regs, RSP, args + layout->sizes[SF_CLR_SIZE_ARGS]);
	return true;
}

static bool restore_inner(const struct looking *look, enum sf_clr_field field, uint64_t frame,
			  struct restored *ret)
{
	const struct sf_clr_layout *layout = &look->coreclr->layout;

	return sf_clr_has(layout, field) &&
	       restore_context(look, frame + layout->fields[field], ret);
}

static bool restore(const struct looking *look, enum how how, uint64_t frame, struct restored *ret)
{
	uint64_t context;

	*ret = (struct restored){ 0 };
	switch (how) {
	case CALL:
		return restore_call(look, frame, ret);
	case CONTEXT:
		return get(look, SF_CLR_RESUMABLE_CONTEXT, frame, &context) &&
		       restore_context(look, context, ret);
	case FAULT:
		return restore_inner(look, SF_CLR_FAULT_CONTEXT, frame, ret);
	case THROW:
		if (!restore_inner(look, SF_CLR_THROW_CONTEXT, frame, ret))
			return false;
		ret->exact = false;
		return true;
	case BLOCK:
		return restore_block(look, frame, ret);
	case HIJACK:
		return restore_hijack(look, frame, ret);
	}
	return false;
}

/* The registers that this frame restores, if its kind restores any. */
static bool restore_frame(const struct looking *look, uint64_t frame, struct restored *ret)
{
	uint64_t kind;

	if (!sf_read_u64(look->memory, frame, &kind) || !kind)
		return false;
	for (unsigned i = 0; i < SF_CLR_N_FRAMES; i++) {
		if (kind == look->coreclr->layout.frames[i])
			return restore(look, hows[i], frame, ret);
	}
	return false;
}

/* Whether it is managed code that stands there, in a frame above. */
static bool is_caller(const struct looking *look, const struct restored *restored, uint64_t above)
{
	const struct sf_reader code = sf_reader_outside(look->memory);
	const uint64_t pc = restored->regs.pc, at = restored->exact ? pc : pc - 1;
	const struct sf_clr_range *range = sf_clr_find_range(look->coreclr, at);
	struct sf_clr_body body;

	return range && restored->regs.r[RSP] > above && restored->regs.r[RSP] % 8 == 0 &&
	       sf_clr_find_body(&look->coreclr->layout, range, &code, at, &body) ==
		       SF_CLR_FOUND_BODY;
}

/*
 * In the routine to which hijacked return addresses lead, before the original one is in its place: the word there is any.
 * The cursor has the registers of the caller, but for pc.
 */
static bool resume_hijacked(const struct looking *look, struct sf_cursor *cursor, uint64_t thread, uint64_t above)
{
	struct restored restored = { .regs = cursor->regs };
	bool present;

	if (!sf_reg_known(&cursor->regs, RSP) ||
	    !sf_clr_hijacked_return(look->coreclr, look->memory, thread, cursor->regs.r[RSP] - WORD, &present,
				    &restored.regs.pc) ||
	    !present || !is_caller(look, &restored, above))
		return false;
	cursor->regs = restored.regs;
	cursor->exact = false;
	cursor->via = SF_VIA_ANCHOR;
	return true;
}

/*
 * Whether the stack has another frame before this one. The list of frames is read when a copied stack is walked: where the
 * thread has run since, it may lack the innermost ones.
 */
static bool is_passed_over(const struct looking *look, uint64_t frame, uint64_t above)
{
	struct restored restored;

	for (uint64_t at = (above + WORD - 1) / WORD * WORD; at < frame; at += WORD) {
		if (at - above >= MAX_BETWEEN || (restore_frame(look, at, &restored) && is_caller(look, &restored, above)))
			return true;
	}
	return false;
}

static bool resume_by_frames(const struct looking *look, struct sf_cursor *cursor, uint64_t thread, uint64_t above)
{
	struct restored restored;
	uint64_t frame, last = 0;

	if (!thread || !get(look, SF_CLR_THREAD_FRAME, thread, &frame))
		return false;
	for (unsigned i = 0; i < MAX_FRAMES && frame && frame != END_OF_FRAMES && frame > last; i++) {
		if (restore_frame(look, frame, &restored) && is_caller(look, &restored, above)) {
			if (cursor->still->flags & SF_STILL_COPY && is_passed_over(look, frame, above))
				return false;
			cursor->regs = restored.regs;
			cursor->exact = restored.exact;
			cursor->via = SF_VIA_ANCHOR;
			return true;
		}
		last = frame;
		if (!get(look, SF_CLR_FRAME_NEXT, frame, &frame))
			return false;
	}
	return false;
}

bool sf_clr_resume(const struct sf_coreclr *coreclr, struct sf_cursor *cursor, uint64_t thread, uint64_t above)
{
	const struct sf_reader outside = sf_reader_outside(&cursor->still->memory);
	const struct looking look = { coreclr, &outside };

	return resume_by_frames(&look, cursor, thread, above) || resume_hijacked(&look, cursor, thread, above);
}

/*
 * The Thread has the slot's address, and the original return address in the word before it (m_ppvHJRetAddrPtr and
 * m_pvHJRetAddr, src/coreclr/vm/threads.h). No descriptor says where, so they are searched. They stay when the
 * suspension is over: only the state says that they hold.
 */
bool sf_clr_hijacked_return(const struct sf_coreclr *coreclr, const struct sf_reader *memory,
			    uint64_t thread, uint64_t slot, bool *present_ret, uint64_t *ret)
{
	const struct sf_reader outside = sf_reader_outside(memory);
	uint64_t words[THREAD_WORDS];
	uint32_t state;

	if (!thread ||
	    !sf_clr_get_u32(&coreclr->layout, &outside, SF_CLR_THREAD_STATE, thread, &state) ||
	    !sf_read(&outside, words, thread, sizeof(words)))
		return false;
	*present_ret = state & HIJACKED;
	for (unsigned i = 1; i < THREAD_WORDS; i++) {
		if (words[i] != slot)
			continue;
		*ret = words[i - 1];
		return true;
	}
	return false;
}
