/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller of a frame of HotSpot: whether a word of the stack is a return address of its code, whether a caller that
 * was found has a caller itself, and how the cursor goes there. Signal-safe. The other step*.c files use it. It uses
 * step_return.c alone, as proof of what it has found.
 */
#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

/*
 * The most words that code pushes around a call. Around the test for subtypes there are a few (JDK-8287425). Around
 * JDK 8's trigonometry there are 16 registers, 16 registers of 16 bytes and their upper halves, two arguments, and
 * one word of alignment (HotSpot 8: cpu/x86/vm/macroAssembler_x86.cpp, fp_runtime_fallback).
 */
#define MAX_EXTRA_WORDS 83
#define MAX_ENTRY_BYTES 4096 /* of call_stub's frame, with the arguments of the call */
#define WORD 8

bool sf_hotspot_is_return(const struct sf_hotspot_step *step, uint64_t pc)
{
	const struct sf_hotspot *hotspot = step->hotspot;
	struct sf_blob blob;
	uint64_t target;

	if (!sf_hotspot_holds(hotspot, pc))
		return false;
	if (pc == hotspot->call_stub_return || sf_hotspot_in_interpreter(hotspot, pc))
		return true;
	if (!sf_hotspot_find(step, pc - 1, &blob))
		return false;
	/*
	 * Return addresses that were put there by hand: of a deoptimized method, of a return
	 * barrier.
	 */
	if (blob.class == SF_BLOB_CONTINUATIONS || (blob.deopt && pc == blob.deopt) ||
	    (blob.deopt_mh && pc == blob.deopt_mh))
		return true;
	return step->cursor->still->arch->is_behind_call(&step->outside, pc, &target);
}

bool sf_hotspot_is_any_return(const struct sf_hotspot_step *step, uint64_t pc)
{
	const struct sf_still *still = step->cursor->still;
	const struct sf_region *region;
	uint64_t target;

	if (sf_hotspot_holds(step->hotspot, pc))
		return sf_hotspot_is_return(step, pc);
	region = sf_frame_region(still, pc, false);
	return region && region->image && still->arch->is_behind_call(&step->outside, pc, &target);
}

enum sf_step sf_hotspot_take(struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller,
			     enum sf_via via, enum sf_end *why)
{
	struct sf_regs *regs = &step->cursor->regs;
	const bool stays = sf_hotspot_holds(step->hotspot, caller->pc);

	*why = SF_END_STUCK;
	/* Where the return address was taken off the stack, sp is the caller's already. */
	if (caller->sp < step->sp || (caller->sp == step->sp && !step->cursor->exact) ||
	    caller->sp % WORD != 0 ||
	    caller->sp - step->sp > 2 * SF_HOTSPOT_MAX_FRAME)
		return SF_STEP_FAILED;
	/* All of its code keeps the thread in r15; its other registers are nobody's. */
	regs->known &= stays ? UINT64_C(1) << SF_X86_R15 : 0;
	regs->pc = caller->pc;
	sf_reg_set(regs, SF_X86_RSP, caller->sp);
	if (caller->fp_known)
		sf_reg_set(regs, SF_X86_RBP, caller->fp);
	step->cursor->via = (uint8_t)via;
	step->cursor->exact = false;
	return SF_STEP_TAKEN;
}

bool sf_hotspot_bare(const struct sf_hotspot_step *step, uint64_t at,
		     struct sf_hotspot_caller *ret)
{
	*ret = (struct sf_hotspot_caller){ .sp = at + WORD, .fp = step->fp,
					   .fp_known = step->fp_known };
	return sf_read_u64(step->memory, at, &ret->pc);
}

bool sf_hotspot_record(const struct sf_hotspot_step *step, uint64_t at,
		       struct sf_hotspot_caller *ret)
{
	uint64_t record[2];

	if (at > UINT64_MAX - sizeof(record) || !sf_read(step->memory, record, at, sizeof(record)))
		return false;
	*ret = (struct sf_hotspot_caller){ .pc = record[1], .sp = at + sizeof(record),
					   .fp = record[0], .fp_known = true };
	return true;
}

/*
 * Java methods are called by the machine's code only: native code comes in by the call stub. Where
 * the caller's fp should be, the address of code stands when the method is not to be entered
 * (HotSpot: BarrierSetNMethod::deoptimize); its entry barrier has the caller's fp back already.
 */
static bool frame_fits(const struct sf_hotspot_step *step, uint64_t top,
		       struct sf_hotspot_caller *ret)
{
	if (!sf_hotspot_record(step, top - 2 * WORD, ret))
		return false;
	if (sf_hotspot_holds(step->hotspot, ret->fp)) {
		ret->fp = step->fp;
		ret->fp_known = step->fp_known;
	}
	return sf_hotspot_holds(step->hotspot, ret->pc) ||
	       (step->blob.class == SF_BLOB_RUNTIME && sf_hotspot_is_any_return(step, ret->pc));
}

bool sf_hotspot_leads_on(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller)
{
	uint64_t word;
	struct sf_method method;
	struct sf_blob blob;

	if (sf_hotspot_in_interpreter(step->hotspot, caller->pc))
		return caller->fp >= caller->sp && caller->fp - caller->sp < SF_HOTSPOT_MAX_FRAME &&
		       sf_read_u64(step->memory, caller->fp - SF_HOTSPOT_METHOD_SLOT, &word) &&
		       sf_hotspot_find_method(step, word, &method);
	if (caller->pc == step->hotspot->call_stub_return)
		return caller->fp >= caller->sp && caller->fp - caller->sp < MAX_ENTRY_BYTES;
	if (!sf_hotspot_find(step, caller->pc - 1, &blob) ||
	    blob.frame_size < 2)
		return true;
	/* As frame_fits() will ask of it: native code calls none of these but the machine's routines. */
	return sf_read_u64(step->memory, caller->sp + (uint64_t)(blob.frame_size - 1) * WORD, &word) &&
	       (blob.class == SF_BLOB_RUNTIME ? sf_hotspot_is_any_return(step, word) :
						sf_hotspot_is_return(step, word));
}

/*
 * A method that has pushed words pops them before it returns, such as the one word in a comparison of strings that C2 has
 * inlined (HotSpot: macroAssembler_x86.cpp, string_compare). Where its code leads to this caller, that is no guess.
 */
static enum sf_via via_to(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller)
{
	struct sf_hotspot_caller found;

	return step->cursor->exact && sf_hotspot_follow_to_return(step, &found) && found.sp == caller->sp && found.pc == caller->pc ?
		       SF_VIA_RUNTIME : SF_VIA_GUESS;
}

/*
 * Where a method has pushed words, its frame's end is further up. By chance an older return address stands where it would
 * be without them. Where such a caller has none itself, the method's code shows the way out.
 */
static bool is_past_stale(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *fitting,
			  struct sf_hotspot_caller *ret)
{
	return step->cursor->exact && step->blob.class == SF_BLOB_COMPILED && !sf_hotspot_leads_on(step, fitting) &&
	       sf_hotspot_follow_to_return(step, ret);
}

/*
 * The frame has its full size: the return address is its last word, the caller's fp the one
 * before.
 */
enum sf_step sf_hotspot_step_by_size(struct sf_hotspot_step *step, enum sf_end *why)
{
	uint64_t top = step->sp + (uint64_t)(uint32_t)step->blob.frame_size * WORD;
	struct sf_hotspot_caller caller, other;

	*why = SF_END_RUNTIME;
	if (step->blob.frame_size < 2)
		return SF_STEP_NOT_MINE;
	top += sf_hotspot_pushed_bytes(step);
	if (frame_fits(step, top, &caller))
		return sf_hotspot_take(step, is_past_stale(step, &caller, &other) ? &other : &caller, SF_VIA_RUNTIME, why);
	if (!sf_hotspot_record(step, top - 2 * WORD, &caller))
		return sf_hotspot_unread(step, top - 2 * WORD, 2 * WORD, why);
	for (unsigned i = 1; i <= MAX_EXTRA_WORDS; i++) {
		if (sf_hotspot_record(step, top + (uint64_t)i * WORD - 2 * WORD, &caller) &&
		    sf_hotspot_is_return(step, caller.pc) && sf_hotspot_leads_on(step, &caller))
			return sf_hotspot_take(step, &caller, via_to(step, &caller), why);
	}
	return SF_STEP_FAILED;
}
