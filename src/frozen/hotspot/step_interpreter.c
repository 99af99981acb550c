/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping over the interpreter's frames. It keeps a frame pointer; where the slots below it are
 * is known from HotSpot's cpu/x86/frame_x86.hpp, as no table tells. The caller's sp is not simply
 * above the frame: the callee's arguments are the caller's expression stack, so the frame says
 * where it is.
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

/*
 * Slots below sp are 0. They are not the frame's yet, while it is being made, and a copy of the stack
 * does not have them.
 */
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

/*
 * Which bytecode: where the interpreter stands, r13; else what it put into the frame before the
 * call.
 */
static bool note_method(struct sf_hotspot_step *step, const struct slots *slots)
{
	const struct sf_regs *regs = &step->cursor->regs;
	const uint64_t bcp = slot(slots, bcp_slot(step->hotspot));
	struct sf_method method;
	int32_t bci = -1;

	if (!sf_hotspot_find_method(step, slot(slots, SLOT_METHOD), &method))
		return false;
	if (step->cursor->exact && sf_reg_known(regs, SF_X86_R13))
		bci = sf_hotspot_bci(step->hotspot, &method, regs->r[SF_X86_R13]);
	if (bci < 0)
		bci = sf_hotspot_bci(step->hotspot, &method, bcp);
	step->frame->kind = SF_KIND_INTERPRETED;
	step->frame->token = method.address;
	step->frame->id = sf_method_id(&method);
	step->frame->bci = bci;
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

/* Only where it was interrupted, or calls the machine: where it calls Java its frame is there. */
static bool may_be_leaving(const struct sf_hotspot_step *step)
{
	const struct sf_trace *trace = step->cursor->trace;

	return step->cursor->exact ||
	       (trace->n_frames >= 2 && trace->frames[trace->n_frames - 2].kind == SF_KIND_NATIVE);
}

enum sf_step sf_hotspot_step_interpreter(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;
	enum sf_step taken;

	if (step->cursor->exact && while_entering(step, &caller)) {
		note_entered(step);
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	}
	if (may_be_leaving(step) && sf_hotspot_leaving_interpreter(step, &caller))
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
