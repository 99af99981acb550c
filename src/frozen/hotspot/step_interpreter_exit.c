/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreter exit: steps out of the interpreter after it has removed a method's frame and before it
 * has reached the caller. Signal-safe. This is the code from "leave" to the jump. For an exception
 * that goes on to the caller, it includes the call that looks up the handler (HotSpot:
 * InterpreterMacroAssembler::remove_activation and its users). fp is the caller's value there and
 * cannot be used: compiled code may keep any value in it, also the fp of an outer frame.
 */
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define LEAVE 0xc9
#define WORD 8
#define BEFORE 128           /* bytes from "leave" to the last place that is known */
#define BEHIND 32            /* and from pc to where sp is set */
#define NONE UINT8_MAX

enum effect { NOTHING, POP, SET_SP, PUSH, SUB, ADD };

/*
 * The instructions of that code. To add one: add a line. `reg`: the register that is popped into, or
 * that holds the caller's sp.
 */
static const struct instruction {
	uint8_t size, n, pattern[4], effect, reg;
} instructions[] = {
	{ 8, 3, { 0x41, 0xc6, 0x87 }, NOTHING, 0 },      /* movb [r15+d32], i8 */
	{ 5, 3, { 0x41, 0xc6, 0x47 }, NOTHING, 0 },
	{ 2, 2, { 0x41, 0x5d }, POP, SF_X86_R13 },
	{ 1, 1, { 0x5a }, POP, SF_X86_RDX },
	{ 1, 1, { 0x5e }, POP, SF_X86_RSI },
	{ 1, 1, { 0x5f }, POP, SF_X86_RDI },
	{ 1, 1, { 0x58 }, POP, SF_X86_RAX },
	{ 1, 1, { 0x59 }, POP, SF_X86_RCX },
	{ 3, 3, { 0x48, 0x8b, 0xe3 }, SET_SP, SF_X86_RBX },
	{ 3, 3, { 0x48, 0x89, 0xdc }, SET_SP, SF_X86_RBX },
	{ 3, 3, { 0x49, 0x8b, 0xe3 }, SET_SP, SF_X86_R11 }, /* behind native methods */
	{ 3, 3, { 0x4c, 0x89, 0xdc }, SET_SP, SF_X86_R11 },
	/* on to compiled code, in a loop: mov rsp, rdx; and rsp, -16; push rcx */
	{ 3, 3, { 0x48, 0x8b, 0xe2 }, SET_SP, SF_X86_RDX },
	{ 3, 3, { 0x48, 0x89, 0xd4 }, SET_SP, SF_X86_RDX },
	{ 4, 4, { 0x48, 0x83, 0xe4, 0xf0 }, NOTHING, 0 },
	{ 1, 1, { 0x51 }, PUSH, 0 },
	{ 7, 3, { 0x49, 0x3b, 0xa7 }, NOTHING, 0 },      /* cmp rsp, [r15+d]; jb; movq [r15+d], 0 */
	{ 4, 3, { 0x49, 0x3b, 0x67 }, NOTHING, 0 },
	{ 2, 1, { 0x72 }, NOTHING, 0 },
	{ 11, 3, { 0x49, 0xc7, 0x87 }, NOTHING, 0 },
	{ 8, 3, { 0x49, 0xc7, 0x47 }, NOTHING, 0 },
	/* an exception: mov rax, [r15+d]; push rax; push rdx; and the call, with an aligned stack */
	{ 7, 3, { 0x49, 0x8b, 0x87 }, NOTHING, 0 },
	{ 4, 3, { 0x49, 0x8b, 0x47 }, NOTHING, 0 },
	{ 1, 1, { 0x50 }, PUSH, 0 },
	{ 1, 1, { 0x52 }, PUSH, 0 },
	{ 3, 3, { 0x49, 0x8b, 0xff }, NOTHING, 0 },      /* mov rdi, r15 */
	{ 3, 3, { 0x4c, 0x89, 0xff }, NOTHING, 0 },
	{ 3, 3, { 0x48, 0x8b, 0xf2 }, NOTHING, 0 },      /* mov rsi, rdx */
	{ 3, 3, { 0x48, 0x89, 0xd6 }, NOTHING, 0 },
	{ 6, 2, { 0xf7, 0xc4 }, NOTHING, 0 },            /* test esp, 15; jz */
	{ 4, 3, { 0x40, 0xf6, 0xc4 }, NOTHING, 0 },
	{ 6, 2, { 0x0f, 0x84 }, NOTHING, 0 },
	{ 2, 1, { 0x74 }, NOTHING, 0 },
	{ 4, 4, { 0x48, 0x83, 0xec, 0x08 }, SUB, 0 },
	{ 4, 4, { 0x48, 0x83, 0xc4, 0x08 }, ADD, 0 },
	{ 5, 1, { 0xe8 }, NOTHING, 0 },                  /* call */
	{ 10, 2, { 0x49, 0xba }, NOTHING, 0 },           /* mov r10, i64; call r10 */
	{ 3, 3, { 0x41, 0xff, 0xd2 }, NOTHING, 0 },
	{ 5, 1, { 0xe9 }, NOTHING, 0 },                  /* jmp over the other call */
	{ 2, 1, { 0xeb }, NOTHING, 0 },
	{ 3, 3, { 0x48, 0x8b, 0xd8 }, NOTHING, 0 },      /* mov rbx, rax */
	{ 3, 3, { 0x48, 0x89, 0xc3 }, NOTHING, 0 },
};

/* How far it has come. */
struct leaving {
	uint8_t popped;          /* the register that holds the return address; NONE: it is on the stack */
	uint8_t sp_from;         /* the register that holds the caller's sp */
	bool set;                /* sp is the caller's, but for what was pushed since */
	unsigned pushed;         /* words */
};

static const struct instruction *find_instruction(const uint8_t *code, unsigned left)
{
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		const struct instruction *instruction = &instructions[i];
		unsigned same = 0;

		while (same < instruction->n && same < left && code[same] == instruction->pattern[same])
			same++;
		if (same == instruction->n && instruction->size <= left)
			return instruction;
	}
	return NULL;
}

static void apply(struct leaving *leaving, const struct instruction *instruction)
{
	switch ((enum effect)instruction->effect) {
	case NOTHING:
		break;
	case POP:
		if (!leaving->set)
			leaving->popped = instruction->reg;
		else if (leaving->pushed)
			leaving->pushed--;
		break;
	case SET_SP:
		leaving->set = true;
		leaving->sp_from = instruction->reg;
		break;
	case PUSH:
	case SUB:
		leaving->pushed++;
		break;
	case ADD:
		leaving->pushed -= leaving->pushed > 0;
		break;
	}
}

/* Runs what stands behind a "leave" at `from` up to `pc`, and on to where sp is set; false: it is something else. */
static bool simulate(const uint8_t *code, unsigned n, unsigned from, unsigned pc,
		     struct leaving *ret)
{
	struct leaving now = { .popped = NONE, .sp_from = NONE };
	unsigned at = from + 1;

	while (at < pc || (at <= n && !now.set)) {
		const struct instruction *instruction = find_instruction(code + at, n - at);

		if (at == pc)
			*ret = now;
		if (!instruction || (at < pc && at + instruction->size > pc))
			return false;
		apply(&now, instruction);
		at += instruction->size;
	}
	if (at == pc)
		*ret = now;
	ret->sp_from = now.sp_from;
	return now.set;
}

static bool find_leaving(const struct sf_hotspot_step *step, struct leaving *ret)
{
	const uint64_t before = step->pc - step->hotspot->interpreter_start;
	const unsigned back = before < BEFORE ? (unsigned)before : BEFORE;
	uint8_t code[BEFORE + BEHIND];

	if (step->hotspot->interpreter_end - step->pc < BEHIND ||
	    !sf_read(&step->outside, code, step->pc - back, back + BEHIND))
		return false;
	for (unsigned i = back; i-- > 0;) {
		if (code[i] == LEAVE && simulate(code, back + BEHIND, i, back, ret))
			return true;
	}
	return false;
}

static bool get(const struct sf_hotspot_step *step, uint8_t reg, uint64_t *ret)
{
	*ret = reg == NONE ? 0 : step->cursor->regs.r[reg];
	return reg != NONE && sf_reg_known(&step->cursor->regs, reg);
}

bool sf_hotspot_leaving_interpreter(const struct sf_hotspot_step *step,
				    struct sf_hotspot_caller *ret)
{
	struct leaving leaving = { .popped = NONE, .sp_from = NONE };
	bool found;

	if (!find_leaving(step, &leaving))
		return false;
	*ret = (struct sf_hotspot_caller){ .sp = step->sp + leaving.pushed * WORD, .fp = step->fp,
					   .fp_known = step->fp_known };
	if (!leaving.set && !get(step, leaving.sp_from, &ret->sp))
		return false;
	if (leaving.popped == NONE)
		found = sf_read_u64(step->memory, step->sp, &ret->pc);
	else if (leaving.pushed >= 2) /* the exception, then where it was thrown */
		found = sf_read_u64(step->memory, ret->sp - 2 * WORD, &ret->pc);
	else
		found = get(step, leaving.popped, &ret->pc);
	return found && ret->sp >= step->sp && ret->sp - step->sp < SF_HOTSPOT_MAX_FRAME &&
	       sf_hotspot_is_return(step, ret->pc);
}
