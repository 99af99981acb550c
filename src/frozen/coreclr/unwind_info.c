/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinding a managed frame by its UNWIND_INFO. The codes undo the prologue, the last instruction first. In a prologue only
 * those count whose instructions were done. An epilogue has no codes: its instructions are followed to the return.
 * Signal-safe.
 */
#include "frozen/coreclr/unwind_info.h"

#include "frozen/arch_x86_64.h"
#include "frozen/code_x86_64.h"

#include "frozen/frozen.h"

#define RSP 7
#define WORD 8
#define MAX_CODES 255

enum op {
	OP_PUSH = 0,
	OP_ALLOC_LARGE = 1,
	OP_ALLOC_SMALL = 2,
	OP_SET_FRAME = 3,
	OP_SAVE = 4,
	OP_SAVE_FAR = 5,
	OP_SAVE_XMM = 8,
	OP_SAVE_XMM_FAR = 9,
	OP_SET_FRAME_LARGE = 11,
};

/* rbx, rbp, r12-r15: kept by calls. */
#define SAVED ((uint64_t)(1u << 3 | 1u << 6 | 0xfu << 12))

struct info {
	uint8_t prologue, n, frame_reg;   /* frame_reg: DWARF's number; 0: none */
	uint32_t frame_offset;
	uint16_t codes[MAX_CODES];
};

static bool read_info(const struct sf_reader *memory, uint64_t address, struct info *ret)
{
	uint8_t head[4];

	/* Version 1, or 2 on newer Windows; flag 4 would mean that another one continues it. */
	if (!sf_read(memory, head, address, sizeof(head)) || (head[0] & 7) != 1 || head[0] & 0x20)
		return false;
	ret->prologue = head[1];
	ret->n = head[2];
	ret->frame_reg = sf_x86_dwarf(head[3]);
	ret->frame_offset = (head[3] >> 4) * 16u;
	return sf_read(memory, ret->codes, address + sizeof(head), ret->n * sizeof(ret->codes[0]));
}

static unsigned op_of(uint16_t code)
{
	return code >> 8 & 15;
}

static unsigned info_of(uint16_t code)
{
	return code >> 12;
}

/* Slots that follow the code's own. */
static unsigned n_extra(uint16_t code)
{
	switch (op_of(code)) {
	case OP_ALLOC_LARGE:
		return info_of(code) ? 2 : 1;
	case OP_SAVE:
	case OP_SAVE_XMM:
		return 1;
	case OP_SAVE_FAR:
	case OP_SAVE_XMM_FAR:
	case OP_SET_FRAME_LARGE:
		return 2;
	default:
		return 0;
	}
}

static uint32_t operand(const struct info *info, unsigned at, unsigned n)
{
	return n == 2 ? info->codes[at + 1] | (uint32_t)info->codes[at + 2] << 16 : info->codes[at + 1];
}

/* The frame's size in bytes that a code took; 0: none. */
static uint64_t allocated(const struct info *info, unsigned at)
{
	const uint16_t code = info->codes[at];

	if (op_of(code) == OP_ALLOC_SMALL)
		return info_of(code) * WORD + WORD;
	if (op_of(code) == OP_ALLOC_LARGE)
		return info_of(code) ? operand(info, at, 2) : operand(info, at, 1) * (uint64_t)WORD;
	return 0;
}

/* A step that is under way. */
struct unwinding {
	const struct sf_reader *memory;
	struct sf_regs regs;
	uint64_t frame;          /* saved registers count from here */
	enum sf_end why;
};

static bool read_word(struct unwinding *step, uint64_t at, uint64_t *ret)
{
	if (sf_read_u64(step->memory, at, ret))
		return true;
	step->why = sf_why_unread(step->memory, at, WORD);
	return false;
}

static bool pop(struct unwinding *step, unsigned reg)
{
	uint64_t *sp = &step->regs.r[RSP], value;

	if (!read_word(step, *sp, &value))
		return false;
	*sp += WORD;
	sf_reg_set(&step->regs, reg, value);
	return true;
}

static bool set_frame(struct unwinding *step, const struct info *info, uint64_t offset)
{
	if (!info->frame_reg || !sf_reg_known(&step->regs, info->frame_reg)) {
		step->why = info->frame_reg ? SF_END_REGISTER : SF_END_RUNTIME;
		return false;
	}
	step->regs.r[RSP] = step->regs.r[info->frame_reg] - offset;
	return true;
}

static bool undo(struct unwinding *step, const struct info *info, unsigned at)
{
	const uint16_t code = info->codes[at];
	uint64_t offset, value;

	switch (op_of(code)) {
	case OP_PUSH:
		return pop(step, sf_x86_dwarf(info_of(code)));
	case OP_ALLOC_LARGE:
	case OP_ALLOC_SMALL:
		step->regs.r[RSP] += allocated(info, at);
		return true;
	case OP_SET_FRAME:
		return set_frame(step, info, info->frame_offset);
	case OP_SET_FRAME_LARGE:
		return set_frame(step, info, operand(info, at, 2) * UINT64_C(16));
	case OP_SAVE:
	case OP_SAVE_FAR:
		offset = op_of(code) == OP_SAVE ? operand(info, at, 1) * UINT64_C(8) : operand(info, at, 2);
		if (!read_word(step, step->frame + offset, &value))
			return false;
		sf_reg_set(&step->regs, sf_x86_dwarf(info_of(code)), value);
		return true;
	case OP_SAVE_XMM:
	case OP_SAVE_XMM_FAR:
		return true;
	default:
		step->why = SF_END_RUNTIME;
		return false;
	}
}

/* Whether the instruction of this code is done. */
static bool is_done(const struct info *info, uint16_t code, uint64_t offset)
{
	return offset >= info->prologue || offset >= (code & 0xff);
}

/* Where the frame's registers are saved: counted from the frame register once it is set, else from the stack pointer. */
static void find_frame(struct unwinding *step, const struct info *info, uint64_t offset)
{
	step->frame = step->regs.r[RSP];
	for (unsigned i = 0; i < info->n; i += 1 + n_extra(info->codes[i])) {
		const uint16_t code = info->codes[i];
		const unsigned n = n_extra(code);

		if (i + n >= info->n || !info->frame_reg || !is_done(info, code, offset) ||
		    !sf_reg_known(&step->regs, info->frame_reg))
			continue;
		if (op_of(code) == OP_SET_FRAME)
			step->frame = step->regs.r[info->frame_reg] - info->frame_offset;
		else if (op_of(code) == OP_SET_FRAME_LARGE)
			step->frame = step->regs.r[info->frame_reg] -
				      operand(info, i, 2) * UINT64_C(16);
	}
}

static bool undo_prologue(struct unwinding *step, const struct info *info, uint64_t offset)
{
	find_frame(step, info, offset);
	for (unsigned i = 0; i < info->n; i += 1 + n_extra(info->codes[i])) {
		if (i + n_extra(info->codes[i]) >= info->n) {
			step->why = SF_END_RUNTIME;
			return false;
		}
		if (is_done(info, info->codes[i], offset) && !undo(step, info, i))
			return false;
	}
	return true;
}

bool sf_clr_unwind(const struct sf_reader *memory, const struct sf_clr_body *body, bool exact,
		   struct sf_regs *regs, uint64_t *slot_ret, enum sf_end *why)
{
	const struct sf_reader outside = sf_reader_outside(memory);
	struct unwinding step = { .memory = memory, .regs = *regs, .why = SF_END_RUNTIME };
	struct info info;
	uint64_t caller;

	if (!(exact && sf_x86_follow_epilogue(memory, body->start, body->end, &step.regs)) &&
	    (!read_info(&outside, body->unwind, &info) || !undo_prologue(&step, &info, regs->pc - body->start))) {
		*why = step.why;
		return false;
	}
	*slot_ret = step.regs.r[RSP];
	if (!read_word(&step, *slot_ret, &caller)) {
		*why = step.why;
		return false;
	}
	step.regs.pc = caller;
	step.regs.r[RSP] += WORD;
	step.regs.known &= SAVED | UINT64_C(1) << RSP;
	*regs = step.regs;
	return true;
}
