/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller of a frame of HotSpot: whether a word of the stack is a return address of its code, whether a caller that
 * was found has a caller itself, and how the cursor goes there. Signal-safe. The other step*.c files use it. It uses
 * step_return.c alone, as proof of what it has found.
 */
#include "frozen/hotspot/instruction.h"
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

bool sf_hotspot_called_routine(const struct sf_hotspot_step *step)
{
	struct sf_blob blob;

	return !step->cursor->exact && step->cursor->trace->n_frames >= 2 && step->frame[-1].kind == SF_KIND_STUB &&
	       sf_hotspot_find(step, step->frame[-1].pc, &blob) && blob.class == SF_BLOB_STUBS;
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
 * --- what compiled code has put below its frame, by the code that takes it away again ---
 *
 * C1 pushes words around calls of routines (HotSpot: c1_LIRAssembler_x86.cpp, slow_subtype_check_id;
 * gc/z/zBarrierSetAssembler_x86.cpp). The slow part of a barrier in C2's code keeps registers there: sub rsp, n; call; add rsp,
 * n; jmp (gc/shared/barrierSetAssembler_x86.cpp, SaveLiveRegisters). Where the code branches, sp is at the frame's lower end
 * again. So no way to the method's return has to be followed, as it is for routines (step_return.c).
 */

#define MAX_INSTRUCTIONS 96 /* 16 registers of 8 bytes, 32 of 64 bytes and 7 masks are loaded again */
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

/*
 * Bytes that compiled code has put below its frame, around a call or in the slow part of a barrier. 0: none, or the code does
 * not say. Not inlined: a handler's stack is small, and the code would stay there while the caller is proved.
 */
__attribute__((noinline)) static uint64_t pushed_bytes(const struct sf_hotspot_step *step)
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

/* --- the caller by the size of the frame --- */

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

enum sf_step sf_hotspot_step_by_size(struct sf_hotspot_step *step, enum sf_end *why)
{
	uint64_t top = step->sp + (uint64_t)(uint32_t)step->blob.frame_size * WORD;
	struct sf_hotspot_caller caller, other;

	*why = SF_END_RUNTIME;
	if (step->blob.frame_size < 2)
		return SF_STEP_NOT_MINE;
	top += pushed_bytes(step);
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
