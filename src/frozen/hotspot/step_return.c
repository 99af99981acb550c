/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller of a hand-written routine (sine, arraycopy, AES, ...), proved by its code. These routines have no unwind
 * rules, they keep a frame pointer or not, and some use it for numbers. But each way on from an instruction to the
 * routine's return changes the stack pointer by what its instructions say. So one such way is followed, by the stack
 * pointer and the frame pointer alone, to the place of the return address. A loop is left where its condition falls
 * through. Where a way goes on in a register or cannot be read, another one is tried. Signal-safe.
 */
#include "frozen/code_x86_64.h"
#include "frozen/hotspot/instruction.h"
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define MAX_INSTRUCTIONS 8192 /* of all ways together; SHA-512 has 2,600 */
#define MAX_WAYS 16           /* that wait to be tried */
#define MAX_SEEN 64           /* jumps that were taken */
#define MAX_SLOTS 8           /* words that the way itself has put on the stack, as far as they matter */
#define WORD 8
#define RDX 2                 /* as instructions number it */
#define RBP 5
#define RSP_IN_CODE 4
#define NOWHERE 16

/* A value that the way has put there: the frame pointer, or a copy of the stack pointer. */
struct slot {
	uint64_t at, value;
	bool known;
};

struct way {
	uint64_t pc, sp, fp;
	bool fp_known;
	uint64_t copy;         /* of the stack pointer, ... */
	uint8_t  copy_in;      /* ... in this register; NOWHERE: none */
	uint8_t  n_slots;      /* of struct following */
	uint64_t popped_rdx;   /* where the word was that was popped into rdx last; 0: none was */
};

struct following {
	const struct sf_hotspot_step *step;
	struct way way;
	struct way waiting[MAX_WAYS];
	struct slot slots[MAX_SLOTS];
	unsigned n_waiting, n_seen;
	uint32_t seen[MAX_SEEN]; /* from the start of the code */
	struct sf_code_piece piece;
};

enum outcome { GOES_ON, RETURNS, LOST };

static bool read_code(struct following *following, struct sf_instruction *ret)
{
	const struct sf_blob *blob = &following->step->blob;
	const uint64_t pc = following->way.pc;

	return pc >= blob->code_start && sf_instruction_at(&following->piece, &following->step->outside, pc, blob->code_end, ret);
}

/* A word of the stack, as the way finds it. */
static bool read_slot(const struct following *following, uint64_t at, uint64_t *ret)
{
	const struct way *way = &following->way;

	for (unsigned i = way->n_slots; i-- > 0;) {
		if (following->slots[i].at == at) {
			*ret = following->slots[i].value;
			return following->slots[i].known;
		}
	}
	/* Below sp is what the way would have put there. */
	return at >= following->step->sp && sf_read_u64(following->step->memory, at, ret);
}

static void write_slot(struct following *following, uint64_t at, uint64_t value, bool known)
{
	struct way *way = &following->way;

	if (way->n_slots < MAX_SLOTS)
		following->slots[way->n_slots++] = (struct slot){ at, value, known };
}

static void push(struct following *following, unsigned reg)
{
	struct way *way = &following->way;

	way->sp -= WORD;
	if (reg == RBP || reg == way->copy_in)
		write_slot(following, way->sp, reg == RBP ? way->fp : way->copy, reg != RBP || way->fp_known);
}

/* The end of an inlined search in a string pops the stack pointer itself (HotSpot: macroAssembler_x86.cpp, string_indexof). */
static enum outcome pop(struct following *following, unsigned reg)
{
	struct way *way = &following->way;

	if (reg == RSP_IN_CODE)
		return read_slot(following, way->sp, &way->sp) ? GOES_ON : LOST;
	if (reg == RBP)
		way->fp_known = read_slot(following, way->sp, &way->fp);
	if (reg == way->copy_in)
		way->copy_in = NOWHERE;
	if (reg == RDX)
		way->popped_rdx = way->sp;
	way->sp += WORD;
	return GOES_ON;
}

/* The address of a memory operand whose base is the stack pointer or the frame pointer. */
static bool address_of(const struct way *way, const struct sf_instruction *in, uint64_t *ret)
{
	const bool by_fp = in->base == RBP && way->fp_known;

	*ret = (by_fp ? way->fp : way->sp) + (uint64_t)(int64_t)in->displacement;
	return in->mod != 3 && !in->has_index && (by_fp || in->base == RSP_IN_CODE);
}

/* mov to a register: of what is known here, 0 and false: of something else. */
static void set_register(struct way *way, unsigned reg, uint64_t value, bool known)
{
	if (reg == RBP) {
		way->fp = value;
		way->fp_known = known;
	} else if (known) {
		way->copy_in = (uint8_t)reg;
		way->copy = value;
	} else if (reg == way->copy_in) {
		way->copy_in = NOWHERE;
	}
}

static bool value_of(const struct way *way, unsigned reg, uint64_t *ret)
{
	*ret = reg == RSP_IN_CODE ? way->sp : reg == RBP ? way->fp : way->copy;
	return reg == RSP_IN_CODE || (reg == RBP && way->fp_known) || reg == way->copy_in;
}

static enum outcome move(struct following *following, unsigned to, uint64_t value, bool known)
{
	if (to != RSP_IN_CODE) {
		set_register(&following->way, to, value, known);
		return GOES_ON;
	}
	following->way.sp = value;
	return known ? GOES_ON : LOST;
}

/* 89, 8b, 8d: mov and lea. */
static enum outcome follow_move(struct following *following, const struct sf_instruction *in)
{
	struct way *way = &following->way;
	uint64_t value = 0, address;
	bool known;

	if (in->opcode == 0x89 && in->mod != 3) {
		known = in->is_wide && value_of(way, in->reg, &value);
		if (address_of(way, in, &address) && (known || in->reg == RBP))
			write_slot(following, address, value, known);
		return GOES_ON;
	}
	if (in->mod == 3) {
		const unsigned from = in->opcode == 0x89 ? in->reg : in->rm;

		known = in->is_wide && value_of(way, from, &value);
		return move(following, in->opcode == 0x89 ? in->rm : in->reg, value, known);
	}
	known = in->is_wide && address_of(way, in, &address);
	if (in->opcode == 0x8b)
		known = known && (in->reg == RSP_IN_CODE || in->reg == RBP) && read_slot(following, address, &value);
	else
		value = known ? address : 0;
	return move(following, in->reg, value, known);
}

/* add, or, and, sub of a number: which of them ModRM says. */
static enum outcome follow_arithmetic(struct way *way, const struct sf_instruction *in)
{
	const uint64_t number = (uint64_t)in->immediate;
	uint64_t *sp = &way->sp;

	if (in->mod != 3)
		return GOES_ON;
	if (in->rm != RSP_IN_CODE) {
		if ((in->reg & 7) != 7) /* cmp */
			set_register(way, in->rm, 0, false);
		return GOES_ON;
	}
	if ((in->reg & 7) == 0)
		*sp += number;
	else if ((in->reg & 7) == 4)
		*sp &= number;
	else if ((in->reg & 7) == 5)
		*sp -= number;
	else if ((in->reg & 7) != 7)
		return LOST;
	return GOES_ON;
}

/* False: that way was taken already. */
static bool is_new(struct following *following, uint64_t to)
{
	const uint64_t start = following->step->blob.code_start;

	for (unsigned i = 0; i < following->n_seen; i++) {
		if (following->seen[i] == (uint32_t)(to - start))
			return false;
	}
	if (following->n_seen == MAX_SEEN)
		return false;
	following->seen[following->n_seen++] = (uint32_t)(to - start);
	return true;
}

static enum outcome follow_jump(struct following *following, uint64_t to)
{
	following->way.pc = to;
	return is_new(following, to) ? GOES_ON : LOST;
}

static void keep_other_way(struct following *following, uint64_t to)
{
	struct way *other = &following->waiting[following->n_waiting];

	if (following->n_waiting == MAX_WAYS)
		return;
	*other = following->way;
	other->pc = to;
	following->n_waiting++;
}

/*
 * Groups that begin with ff. A call comes back, a jump by a register goes nowhere that is known; but one to an exception's
 * handler does so behind the pop of the return address (step_routine.c).
 */
static enum outcome follow_group(struct following *following, const struct sf_instruction *in)
{
	struct way *way = &following->way;

	if ((in->reg & 7) == 4 && in->mod == 3 && way->popped_rdx && way->popped_rdx + WORD == way->sp) {
		way->sp = way->popped_rdx;
		return RETURNS;
	}
	if ((in->reg & 7) == 6)
		way->sp -= WORD;
	return (in->reg & 6) == 4 ? LOST : GOES_ON;
}

/* Opcodes with a register in ModRM and none in its middle: that extends the opcode. */
static bool is_group(uint8_t opcode)
{
	return (opcode & 0xfc) == 0x80 || (opcode & 0xfe) == 0xc0 || (opcode & 0xfe) == 0xc6 || (opcode & 0xfc) == 0xd0 ||
	       (opcode & 0xf6) == 0xf6;
}

static bool names(const struct sf_instruction *in, unsigned reg)
{
	if (!in->has_modrm)
		return (in->opcode & 0xf8) == 0xb8 && in->rm == reg;
	return (in->mod == 3 && in->rm == reg) || (!is_group(in->opcode) && in->reg == reg);
}

/* Arithmetic of 64 bits, and loads of numbers: what names a register may write it. Comparisons (38 to 3d, 84, 85) do not. */
static enum outcome follow_other(struct way *way, const struct sf_instruction *in)
{
	if ((!in->is_wide && in->has_modrm) || (in->opcode >= 0x38 && in->opcode <= 0x3d) || (in->opcode & 0xfe) == 0x84)
		return GOES_ON;
	if (names(in, RBP))
		way->fp_known = false;
	return names(in, RSP_IN_CODE) ? LOST : GOES_ON;
}

static enum outcome follow_one_byte(struct following *following, const struct sf_instruction *in)
{
	struct way *way = &following->way;

	switch (in->opcode & 0xf8) {
	case 0x50:
		push(following, in->rm);
		return GOES_ON;
	case 0x58:
		return pop(following, in->rm);
	default:
		break;
	}
	switch (in->opcode) {
	case 0x68:
	case 0x6a:
	case 0x9c:
		way->sp -= WORD;
		return GOES_ON;
	case 0x8f:
	case 0x9d:
		way->sp += WORD;
		return GOES_ON;
	case 0x81:
	case 0x83:
		return follow_arithmetic(way, in);
	case 0x89:
	case 0x8b:
	case 0x8d:
		return follow_move(following, in);
	case 0xc9:
		if (!way->fp_known)
			return LOST;
		way->sp = way->fp;
		return pop(following, RBP);
	case 0xc3:
		return RETURNS;
	case 0xe9:
	case 0xeb:
		return follow_jump(following, way->pc + (uint64_t)in->immediate);
	case 0xcc:
	case 0xf4:
		return LOST;
	case 0xff:
		return follow_group(following, in);
	default:
		return follow_other(way, in);
	}
}

static enum outcome follow(struct following *following)
{
	struct sf_instruction in;

	if (!read_code(following, &in))
		return LOST;
	following->way.pc += in.size;
	if (in.is_vector)
		return GOES_ON;
	if (sf_instruction_is_conditional(&in)) {
		keep_other_way(following, following->way.pc + (uint64_t)in.immediate);
		return GOES_ON;
	}
	if (in.map == SF_MAP_ONE)
		return follow_one_byte(following, &in);
	return in.map == SF_MAP_0F && in.opcode == 0x0b ? LOST : GOES_ON; /* ud2 */
}

/* Where the way ends: whether the word there is the routine's return address. */
static bool is_caller(const struct following *following, struct sf_hotspot_caller *ret)
{
	const struct way *way = &following->way;

	if (way->sp < following->step->sp || !read_slot(following, way->sp, &ret->pc))
		return false;
	ret->sp = way->sp + WORD;
	ret->fp = way->fp;
	ret->fp_known = way->fp_known;
	return sf_hotspot_is_any_return(following->step, ret->pc);
}

/* The way that was left last; one whose beginning another has taken would end as that did. */
static bool take_other_way(struct following *following)
{
	while (following->n_waiting) {
		following->way = following->waiting[--following->n_waiting];
		if (is_new(following, following->way.pc))
			return true;
	}
	return false;
}

bool sf_hotspot_follow_to_return(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	struct following following = { .step = step, .way = {
		.pc = step->pc, .sp = step->sp, .fp = step->fp, .fp_known = step->fp_known, .copy_in = NOWHERE } };

	for (unsigned i = 0; i < MAX_INSTRUCTIONS; i++) {
		const enum outcome outcome = follow(&following);

		if (outcome == RETURNS && is_caller(&following, ret))
			return true;
		if (outcome != GOES_ON && !take_other_way(&following))
			return false;
	}
	return false;
}
