/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping over the interpreter's frames, and out of its code that has none. Signal-safe. The interpreter keeps a frame pointer;
 * where the slots below it are is known from HotSpot's cpu/x86/frame_x86.hpp, as no table tells. The caller's sp is not simply
 * above the frame: the callee's arguments are the caller's expression stack, so the frame says where it is.
 */
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define WORD 8
#define SLOTS 8              /* below fp that are read */

enum slot {                  /* words from fp */
	SLOT_RETURN = 1, SLOT_FP = 0, SLOT_SENDER_SP = -1, SLOT_METHOD = -3,
};

/* JDK 9 put the class's mirror among the slots. */
static int bcp_slot(const struct sf_hotspot *hotspot)
{
	return hotspot->version == 8 ? -7 : -8;
}

static const struct sf_hotspot_entry *find_entry(const struct sf_hotspot_step *step)
{
	const struct sf_hotspot *hotspot = step->hotspot;

	for (uint32_t i = 0; i < hotspot->n_entries && i < SF_HOTSPOT_ENTRIES; i++) {
		if (step->pc >= hotspot->entries[i].start && step->pc < hotspot->entries[i].end)
			return &hotspot->entries[i];
	}
	return NULL;
}

/* On entry rbx is the Method, and r13 the caller's sp until it becomes the pointer to bytecodes. */
static uint64_t sender_sp(const struct sf_hotspot_step *step, uint64_t otherwise)
{
	const uint64_t r13 = step->cursor->regs.r[SF_X86_R13];

	return sf_reg_known(&step->cursor->regs, SF_X86_R13) && r13 >= otherwise &&
	       r13 - step->sp < SF_HOTSPOT_MAX_FRAME ? r13 : otherwise;
}

static void note_entered(struct sf_hotspot_step *step)
{
	const uint64_t rbx = step->cursor->regs.r[SF_X86_RBX];
	struct sf_method method;

	if (!sf_reg_known(&step->cursor->regs, SF_X86_RBX) ||
	    !sf_hotspot_find_method(step, rbx, &method))
		return;
	step->frame->kind = SF_KIND_INTERPRETED;
	step->frame->token = rbx;
	step->frame->id = sf_method_id(&method);
	step->frame->bci = 0;
}

/* Before "push rbp": the return address is on top of the stack, or for a moment only in rax. */
static bool before_push(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;

	if (!sf_hotspot_bare(step, step->sp, ret))
		return false;
	if (!sf_hotspot_is_return(step, ret->pc)) {
		ret->pc = regs->r[SF_X86_RAX];
		ret->sp = step->sp;
		if (!sf_reg_known(regs, SF_X86_RAX) || !sf_hotspot_is_return(step, ret->pc))
			return false;
	}
	ret->sp = sender_sp(step, ret->sp);
	return true;
}

/* After "mov rbp, rsp", until the Method is in its slot. */
static bool half_made(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	uint64_t sender;

	if (!step->fp_known || !sf_hotspot_record(step, step->fp, ret))
		return false;
	sender = sender_sp(step, ret->sp);
	if (step->sp <= step->fp + (uint64_t)SLOT_SENDER_SP * WORD &&
	    !sf_read_u64(step->memory, step->fp + (uint64_t)SLOT_SENDER_SP * WORD, &sender))
		return false;
	ret->sp = sender;
	return true;
}

/* The caller of a frame that is only just being made. */
static bool while_entering(struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_hotspot_entry *entry = find_entry(step);

	if (!entry)
		return false;
	if (step->pc <= entry->frame)
		return before_push(step, ret);
	if (step->pc < entry->frame + 4) {
		if (!sf_hotspot_bare(step, step->sp + WORD, ret))
			return false;
		ret->sp = sender_sp(step, ret->sp);
		return true;
	}
	return step->sp > step->fp + (uint64_t)SLOT_METHOD * WORD && half_made(step, ret);
}

/* The slots around fp, indexed from the lowest one. */
struct slots {
	uint64_t words[SLOTS + 2];
};

/* Slots below sp are 0. They are not the frame's yet, while it is being made, and a copy of the stack does not have them. */
static bool read_slots(const struct sf_hotspot_step *step, struct slots *ret, enum sf_end *why)
{
	const uint64_t lowest = step->fp - SLOTS * WORD;
	const uint64_t start = step->sp > lowest ? step->sp : lowest;
	const uint64_t n = (step->fp + 2 * WORD - start) / WORD;

	*ret = (struct slots){ 0 };
	if (sf_read(step->memory, &ret->words[SLOTS + 2 - n], start, n * WORD))
		return true;
	sf_hotspot_unread(step, start, n * WORD, why);
	return false;
}

static uint64_t slot(const struct slots *slots, int number)
{
	return slots->words[SLOTS + number];
}

/* Where it was interrupted, or calls the machine: not where it calls Java. */
static bool is_outside_java(const struct sf_hotspot_step *step)
{
	return step->cursor->exact || (step->cursor->trace->n_frames >= 2 && step->frame[-1].kind == SF_KIND_NATIVE);
}

/*
 * Which bytecode: where the interpreter stands, r13, which native code keeps; else what it put into the frame before the call.
 * Before it calls leaf routines, as for remainders and collectors' barriers, it puts nothing there (HotSpot:
 * InterpreterMacroAssembler::call_VM_leaf_base). Then the slot is an earlier call's, and behind a hand-written routine r13 is not
 * known. Entries of methods that call one (sines) have no frame: theirs is the caller's. -1: not known.
 */
static int32_t find_bytecode(const struct sf_hotspot_step *step, const struct slots *slots, const struct sf_method *method)
{
	const struct sf_regs *regs = &step->cursor->regs;
	int32_t bci = -1;

	if (is_outside_java(step) && sf_reg_known(regs, SF_X86_R13))
		bci = sf_hotspot_bci(step->hotspot, method, regs->r[SF_X86_R13]);
	if (bci >= 0 || (sf_hotspot_called_routine(step) && !find_entry(step)))
		return bci;
	return sf_hotspot_bci(step->hotspot, method, slot(slots, bcp_slot(step->hotspot)));
}

static bool note_method(struct sf_hotspot_step *step, const struct slots *slots)
{
	struct sf_method method;

	if (!sf_hotspot_find_method(step, slot(slots, SLOT_METHOD), &method))
		return false;
	step->frame->kind = SF_KIND_INTERPRETED;
	step->frame->token = method.address;
	step->frame->id = sf_method_id(&method);
	step->frame->bci = find_bytecode(step, slots, &method);
	return true;
}

static enum sf_step step_frame(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;
	struct slots slots;
	bool known;

	*why = SF_END_RUNTIME;
	if (step->fp < step->sp || step->fp % WORD != 0 ||
	    step->fp - step->sp > SF_HOTSPOT_MAX_FRAME)
		return SF_STEP_FAILED;
	if (!read_slots(step, &slots, why))
		return SF_STEP_FAILED;
	known = note_method(step, &slots);
	caller = (struct sf_hotspot_caller){
		.pc = slot(&slots, SLOT_RETURN), .sp = slot(&slots, SLOT_SENDER_SP),
		.fp = slot(&slots, SLOT_FP), .fp_known = true,
	};
	/*
	 * Usually it is above the return address; where a method handle's linker took an argument
	 * off the stack and moved the return address up, it is the old one.
	 */
	if (caller.sp <= step->fp || !sf_hotspot_holds(step->hotspot, caller.pc) ||
	    (!known && !sf_hotspot_is_return(step, caller.pc)))
		return SF_STEP_FAILED;
	/* Without a Method it is a skeleton: deoptimization is about to fill it in. */
	step->frame->kind = SF_KIND_INTERPRETED;
	return sf_hotspot_take(step, &caller, known ? SF_VIA_RUNTIME : SF_VIA_GUESS, why);
}

/*
 * --- after a method's frame was removed, and before the caller is reached ---
 *
 * This is the code from "leave" to the jump. For an exception that goes on to the caller, it includes the call that looks up
 * the handler (HotSpot: InterpreterMacroAssembler::remove_activation and its users). fp is the caller's value there and cannot
 * be used: compiled code may keep any value in it, also the fp of an outer frame.
 */

#define LEAVE 0xc9
#define BEFORE 128           /* bytes from "leave" to the last place that is known */
#define BEHIND 32            /* and from pc to where sp is set */
#define NONE UINT8_MAX

enum effect { NOTHING, POP, SET_SP, PUSH, SUB, ADD };

/* The instructions of that code. To add one: add a line. `reg`: the register that is popped into, or that holds the caller's sp. */
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

/* Not inlined: a handler's stack is small, and the code would stay there while other steps are tried. */
__attribute__((noinline)) static bool find_leaving(const struct sf_hotspot_step *step, struct leaving *ret)
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

static bool is_left(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
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

/* --- any of these --- */

enum sf_step sf_hotspot_step_interpreter(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;
	enum sf_step taken;

	if (step->cursor->exact && while_entering(step, &caller)) {
		note_entered(step);
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	}
	if (is_outside_java(step) && is_left(step, &caller)) /* where it calls Java its frame is there */
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	*why = SF_END_REGISTER;
	if (!step->fp_known)
		return SF_STEP_FAILED;
	taken = step_frame(step, why);
	if (taken == SF_STEP_TAKEN || *why == SF_END_COPY || !step->cursor->exact)
		return taken;
	step->frame->kind = SF_KIND_STUB;
	step->frame->token = 0;
	return sf_hotspot_step_routine(step, why);
}
