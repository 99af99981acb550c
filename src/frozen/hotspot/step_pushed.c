/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds how much compiled code has put below its frame, by the code that takes it away again. C1 pushes words around calls of
 * routines (HotSpot: c1_LIRAssembler_x86.cpp, slow_subtype_check_id; gc/z/zBarrierSetAssembler_x86.cpp). The slow part of a
 * barrier in C2's code keeps registers there: sub rsp, n; call; add rsp, n; jmp (gc/shared/barrierSetAssembler_x86.cpp,
 * SaveLiveRegisters). Where the code branches, sp is at the frame's lower end again. So no way to the method's return has to be
 * followed, as it is for routines (step_return.c). Signal-safe.
 */
#include "frozen/hotspot/instruction.h"
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define MAX_INSTRUCTIONS 96 /* 16 registers of 8 bytes, 32 of 64 bytes and 7 masks are loaded again */
#define WORD 8
#define RSP_IN_CODE 4
#define RBP 5

enum effect { GOES_ON, BRANCHES, ENDS }; /* ENDS: the frame, or what can be followed */

/* Numbers that are added to the stack pointer, and taken from it: which of them ModRM says. */
static enum effect count_arithmetic(const struct sf_instruction *in, int64_t *sum)
{
	if (in->mod != 3 || in->rm != RSP_IN_CODE)
		return GOES_ON;
	switch (in->reg & 7) {
	case 0: /* add */
		*sum += in->immediate;
		return GOES_ON;
	case 5: /* sub */
		*sum -= in->immediate;
		return GOES_ON;
	case 7: /* cmp */
		return GOES_ON;
	default:
		return ENDS;
	}
}

/* mov and lea to the stack pointer: only lea rsp, [rsp+d] can be followed. */
static enum effect count_move(const struct sf_instruction *in, int64_t *sum)
{
	const unsigned to = in->opcode == 0x89 ? in->rm : in->reg;

	if (to != RSP_IN_CODE || (in->opcode == 0x89 && in->mod != 3))
		return GOES_ON;
	if (in->opcode != 0x8d || in->base != RSP_IN_CODE || in->has_index)
		return ENDS;
	*sum += in->displacement;
	return GOES_ON;
}

/* ff: a call comes back; push; a jump. */
static enum effect count_group(const struct sf_instruction *in, int64_t *sum)
{
	if ((in->reg & 6) == 4)
		return BRANCHES;
	*sum -= (in->reg & 7) == 6 ? WORD : 0;
	return GOES_ON;
}

static enum effect count_one_byte(const struct sf_instruction *in, int64_t *sum)
{
	switch (in->opcode) {
	case 0x68: /* push of a number, and of flags */
	case 0x6a:
	case 0x9c:
		*sum -= WORD;
		return GOES_ON;
	case 0x8f: /* pop to memory, and of flags */
	case 0x9d:
		*sum += WORD;
		return GOES_ON;
	case 0x81:
	case 0x83:
		return count_arithmetic(in, sum);
	case 0x89:
	case 0x8b:
	case 0x8d:
		return count_move(in, sum);
	case 0xe9:
	case 0xeb:
		return BRANCHES;
	case 0xc3: /* ret, leave, int3, hlt */
	case 0xc9:
	case 0xcc:
	case 0xf4:
		return ENDS;
	case 0xff:
		return count_group(in, sum);
	default:
		return GOES_ON;
	}
}

/* *sum: what the stack pointer has risen by. */
static enum effect count(const struct sf_instruction *in, int64_t *sum)
{
	if (in->is_vector)
		return GOES_ON;
	if (sf_instruction_is_conditional(in))
		return BRANCHES;
	if (in->map != SF_MAP_ONE)
		return in->map == SF_MAP_0F && in->opcode == 0x0b ? ENDS : GOES_ON; /* ud2 */
	if ((in->opcode & 0xf8) == 0x50) {
		*sum -= WORD;
		return GOES_ON;
	}
	if ((in->opcode & 0xf8) == 0x58) {
		*sum += WORD;
		return in->rm == RBP || in->rm == RSP_IN_CODE ? ENDS : GOES_ON; /* pop rbp ends the frame */
	}
	return count_one_byte(in, sum);
}

/* Around calls of Java methods there is nothing. */
static bool may_have_pushed(const struct sf_hotspot_step *step)
{
	if (step->blob.class != SF_BLOB_COMPILED)
		return false;
	return step->cursor->exact || (step->cursor->trace->n_frames > 1 &&
				       (step->frame[-1].kind == SF_KIND_STUB || step->frame[-1].kind == SF_KIND_NATIVE));
}

uint64_t sf_hotspot_pushed_bytes(const struct sf_hotspot_step *step)
{
	struct sf_code_piece piece = { .size = 0 };
	struct sf_instruction in;
	uint64_t pc = step->pc;
	int64_t sum = 0;

	if (!may_have_pushed(step))
		return 0;
	for (unsigned i = 0; i < MAX_INSTRUCTIONS && sf_instruction_at(&piece, &step->outside, pc, step->blob.code_end, &in); i++) {
		const enum effect effect = count(&in, &sum);

		pc += in.size;
		if (effect == GOES_ON)
			continue;
		return effect == BRANCHES && sum > 0 && sum % WORD == 0 && sum < SF_HOTSPOT_MAX_FRAME ? (uint64_t)sum : 0;
	}
	return 0;
}
