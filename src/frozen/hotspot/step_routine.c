/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping over the machine's own routines: calls into it, which have a frame of known size once it
 * is made, and hand-written ones (arraycopy, sine, ...) of which nothing is known but the stack.
 */
#include <string.h>

#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define MAX_SCANNED_WORDS 12
#define POP_DISTANCE 64      /* bytes from "pop rdx" to the last instruction of its routine */
#define PUSH_RDX 0x52
#define POP_RDX 0x5a
#define POP_RBP 0x5d
#define WORD 8

static bool is_frame_pointer(const struct sf_hotspot_step *step)
{
	return step->fp_known && step->fp >= step->sp && step->fp % WORD == 0 &&
	       step->fp - step->sp <= 65536;
}

/*
 * The routine at the entry of methods (HotSpot: StubGenerator::generate_method_entry_barrier) keeps
 * a word below its return address: -1, or, when the method is not to be entered
 * (BarrierSetNMethod::deoptimize), where the method's own return address stands.
 */
static bool behind_entry_word(const struct sf_hotspot_step *step, uint64_t at,
			      struct sf_hotspot_caller *ret)
{
	struct sf_blob blob;
	uint64_t word;

	if (!sf_read_u64(step->memory, at, &word) || !sf_hotspot_bare(step, at + WORD, ret) ||
	    !sf_hotspot_is_return(step, ret->pc))
		return false;
	return word == UINT64_MAX ||
	       (sf_hotspot_find(step, ret->pc - 1, &blob) &&
		blob.frame_size >= 2 &&
		word == at + WORD + (uint64_t)(uint32_t)blob.frame_size * WORD);
}

static bool by_frame_pointer(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	uint64_t callers_fp;

	if (!is_frame_pointer(step) || !sf_hotspot_record(step, step->fp, ret))
		return false;
	if (sf_hotspot_is_any_return(step, ret->pc))
		return true;
	callers_fp = ret->fp;
	if (!behind_entry_word(step, step->fp + WORD, ret))
		return false;
	ret->fp = callers_fp;
	ret->fp_known = true;
	return true;
}

static bool by_scanning(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	for (unsigned i = 0; i < MAX_SCANNED_WORDS; i++) {
		if (sf_hotspot_bare(step, step->sp + i * WORD, ret) &&
		    sf_hotspot_is_any_return(step, ret->pc)) {
			ret->fp_known = ret->fp_known && i == 0;
			return true;
		}
	}
	return false;
}

/*
 * The word on top of the stack may be left over from another call. If it is an address of compiled
 * code, then the frame of that method must lead to a valid caller, too.
 */
static bool leads_on(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller)
{
	struct sf_hotspot_caller next;
	struct sf_blob blob;

	if (!sf_hotspot_is_any_return(step, caller->pc))
		return false;
	if (!sf_hotspot_find(step, caller->pc - 1, &blob) ||
	    blob.class != SF_BLOB_COMPILED || blob.frame_size < 2)
		return true;
	return sf_hotspot_bare(step, caller->sp + (uint64_t)(uint32_t)(blob.frame_size - 1) * WORD,
			       &next) &&
	       sf_hotspot_holds(step->hotspot, next.pc);
}

/* Where the call goes behind which this is; 0: not known. */
static uint64_t call_target(const struct sf_hotspot_step *step, uint64_t behind)
{
	uint64_t target;

	return step->cursor->still->arch->is_behind_call(&step->outside, behind, &target) ? target : 0;
}

/*
 * The word on top of the stack is left over from another call in this case: the return address that
 * fp leads to is behind a call of a routine of this blob. That routine begins before pc, and nearer to
 * pc than the routine that was called before the word on top.
 */
static bool is_left_over(const struct sf_hotspot_step *step, uint64_t on_top)
{
	struct sf_hotspot_caller by_fp;
	uint64_t theirs, ours;

	if (!by_frame_pointer(step, &by_fp))
		return false;
	ours = call_target(step, by_fp.pc);
	theirs = call_target(step, on_top);
	return ours >= step->blob.code_start && ours <= step->pc && theirs &&
	       (theirs < ours || theirs > step->pc);
}

/*
 * Where a routine was interrupted: on its return, or before anything but the return address was
 * pushed.
 */
static bool at_edge(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	uint8_t byte = 0;

	if (sf_hotspot_bare(step, step->sp, ret) && leads_on(step, ret) &&
	    !is_left_over(step, ret->pc))
		return true;
	if (behind_entry_word(step, step->sp, ret) ||
	    (step->fp != step->sp && behind_entry_word(step, step->sp + WORD, ret)))
		return true;
	return sf_read(&step->outside, &byte, step->pc, 1) && byte == POP_RBP &&
	       sf_hotspot_record(step, step->sp, ret) && sf_hotspot_is_any_return(step, ret->pc);
}

/*
 * A caller that the code does not prove is a guess. The order of guesses matters: with compiled code as the caller, rbp
 * may by chance be the one of a frame further up.
 */
enum sf_step sf_hotspot_step_routine(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;

	if (sf_hotspot_follow_to_return(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	if (step->cursor->exact && at_edge(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_GUESS, why);
	*why = SF_END_COPY;
	if (is_frame_pointer(step) && sf_why_unread(step->memory, step->fp + 2 * WORD - 1, 1) == SF_END_COPY)
		return SF_STEP_FAILED;
	if (by_frame_pointer(step, &caller) || by_scanning(step, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_GUESS, why);
	*why = sf_why_unread(step->memory, step->sp + MAX_SCANNED_WORDS * WORD, 1) == SF_END_COPY ?
		       SF_END_COPY : SF_END_RUNTIME;
	return SF_STEP_FAILED;
}

/*
 * Most routines keep a frame pointer. Their return address need not be behind a call: a poll anywhere
 * in a method leads to a routine, too.
 */
static bool by_own_frame_pointer(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	struct sf_blob blob;

	return step->blob.frame_size >= 2 && step->fp_known && step->fp >= step->sp &&
	       step->fp % WORD == 0 &&
	       step->fp - step->sp <= (uint64_t)(uint32_t)(step->blob.frame_size - 2) * WORD &&
	       sf_hotspot_record(step, step->fp, ret) && sf_hotspot_holds(step->hotspot, ret->pc) &&
	       sf_hotspot_find(step, ret->pc, &blob);
}

/*
 * Routines that look for an exception's handler are jumped to with the return address (where it was
 * thrown) in rdx. They begin with: push rdx; and end with: add rsp, n; pop rdx; ...; jmp r8. Before
 * the one and behind the other, what stands on the stack is the thrower's own, and may by chance be
 * an address of code. Those that throw again end with: pop rbp; pop rdx; jmp r10. (HotSpot:
 * OptoRuntime::generate_exception_blob; the TailJump of x86_64.ad.)
 */
static bool is_push(const struct sf_hotspot_step *step)
{
	uint8_t first;

	return step->pc == step->blob.code_start &&
	       sf_read(&step->outside, &first, step->pc, 1) && first == PUSH_RDX;
}

static bool is_frames_end(const uint8_t *code)
{
	return code[3] == POP_RBP || (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4);
}

/* Bytes from the "pop rdx" that ends a frame to pc; -1: there is none close before it. */
static int behind_pop(const struct sf_hotspot_step *step)
{
	const uint64_t before = step->pc - step->blob.code_start;
	unsigned back = before < POP_DISTANCE ? (unsigned)before : POP_DISTANCE;
	uint8_t code[POP_DISTANCE + 1];

	if (!sf_read(&step->outside, code, step->pc - back, back + 1))
		return -1;
	for (unsigned i = 0; i + 4 <= back; i++) {
		if (is_frames_end(code + i) && code[i + 4] == POP_RDX)
			return (int)(back - i - 4);
	}
	return -1;
}

static bool in_finder(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;
	const int behind = is_push(step) ? 1 : behind_pop(step);

	if (behind == 0)
		return sf_hotspot_bare(step, step->sp, ret) && sf_hotspot_is_return(step, ret->pc);
	*ret = (struct sf_hotspot_caller){
		.pc = regs->r[SF_X86_RDX], .sp = step->sp, .fp = step->fp,
		.fp_known = step->fp_known,
	};
	return behind > 0 && sf_reg_known(regs, SF_X86_RDX) && sf_hotspot_is_return(step, ret->pc);
}

/*
 * The routine that takes an exception from a callee of C1's code to a handler in the method that called ends with: leave;
 * pop rcx; jmp rcx (HotSpot: Runtime1::generate_handle_exception). 0 to 2: at which of them pc is; 3: at none.
 */
static unsigned at_end_of_handling(const struct sf_hotspot_step *step)
{
	static const uint8_t end[] = { 0xc9, 0x59, 0xff, 0xe1 };
	uint8_t code[sizeof(end)];
	unsigned at = 0;

	while (at < 3 && !(sf_read(&step->outside, code, step->pc - at, sizeof(code)) && memcmp(code, end, sizeof(end)) == 0))
		at++;
	return at;
}

/* The handler's address is in the place of the return address then, and no call stands before it. */
static bool goes_to_handler(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_regs *regs = &step->cursor->regs;
	const unsigned at = at_end_of_handling(step);
	struct sf_blob blob;

	if (at == 3 || (at == 0 && !(step->fp_known && sf_hotspot_record(step, step->fp, ret))) ||
	    (at == 1 && !sf_hotspot_bare(step, step->sp, ret)) || (at == 2 && !sf_reg_known(regs, SF_X86_RCX)))
		return false;
	if (at == 2)
		*ret = (struct sf_hotspot_caller){ .pc = regs->r[SF_X86_RCX], .sp = step->sp, .fp = step->fp,
						   .fp_known = step->fp_known };
	return sf_hotspot_find(step, ret->pc, &blob) && blob.class == SF_BLOB_COMPILED;
}

/* The frame has its size and leads on, as far as can be seen. */
static bool is_whole(const struct sf_hotspot_step *step)
{
	const struct sf_blob *blob = &step->blob;
	struct sf_hotspot_caller caller;
	uint64_t words = (uint64_t)(uint32_t)blob->frame_size;

	if (blob->frame_size < 2)
		return false;
	if (!step->cursor->exact)
		return true;
	if (blob->frame_complete >= 0)
		return step->pc >= blob->code_start + (uint32_t)blob->frame_complete;
	return sf_hotspot_bare(step, step->sp + (words - 1) * WORD, &caller) &&
	       leads_on(step, &caller);
}

/*
 * --- the routine that the poll of a loop leads to ---
 *
 * Such a poll is a load that faults: the signal's handler sends the thread here with nothing pushed, and notes in the
 * JavaThread where it was. The routine makes room for a return address, and puts it there only right before it calls the
 * machine (HotSpot: SharedRuntime::generate_handler_blob). No table says where the note is; the routine's own instructions do:
 *
 *   push rbx; push rbp; mov rbp, rsp; ...; mov rbx, [r15+note]; mov [rbp+8], rbx; ...; call
 */

#define MAX_DISTANCE 2048    /* bytes from the start to the store: all registers are saved first */
#define PIECE 128
#define LOAD_SIZE 7
#define FETCH_SIZE 11        /* of load and store */
#define FRAME_SET 5          /* bytes from the start to behind "mov rbp, rsp" */

/* mov rbx, [r15+d32]; mov [rbp+8], rbx: or by way of rdi, as JDK 8 does it. */
static bool is_fetch(const uint8_t *code)
{
	return code[0] == 0x49 && code[1] == 0x8b && (code[2] == 0x9f || code[2] == 0xbf) &&
	       code[7] == 0x48 && code[8] == 0x89 && code[9] == (code[2] == 0x9f ? 0x5d : 0x7d) &&
	       code[10] == 0x08;
}

static bool begins_with_room(const struct sf_hotspot_step *step)
{
	uint8_t code[FRAME_SET];

	return sf_read(&step->outside, code, step->blob.code_start, sizeof(code)) &&
	       code[0] == 0x53 && code[1] == 0x55 && code[2] == 0x48 &&
	       ((code[3] == 0x8b && code[4] == 0xec) || (code[3] == 0x89 && code[4] == 0xe5));
}

/*
 * Where the store is, and which field of the JavaThread is stored. A piece at a time: a
 * handler's stack is small.
 */
static bool find_fetch(const struct sf_hotspot_step *step, uint64_t *store_ret, uint32_t *field_ret)
{
	const uint64_t size = step->blob.code_end - step->blob.code_start;
	uint8_t code[PIECE];

	for (uint64_t from = 0; from + PIECE <= size && from < MAX_DISTANCE;
	     from += PIECE - FETCH_SIZE + 1) {
		if (!sf_read(&step->outside, code, step->blob.code_start + from, sizeof(code)))
			return false;
		for (unsigned i = 0; i + FETCH_SIZE <= PIECE; i++) {
			if (!is_fetch(code + i))
				continue;
			*store_ret = step->blob.code_start + from + i + LOAD_SIZE;
			memcpy(field_ret, code + i + 3, sizeof(*field_ret));
			return true;
		}
	}
	return false;
}

/* The caller, by the words that the code before pc has pushed, and by the saved fp. */
static bool leave_frame(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const uint64_t offset = step->pc - step->blob.code_start;
	const uint64_t pushed = offset == 0 ? 0 : offset == 1 ? WORD : 2 * WORD;

	*ret = (struct sf_hotspot_caller){ .sp = step->sp + pushed, .fp = step->fp,
					   .fp_known = step->fp_known };
	if (offset < FRAME_SET)
		return true;
	return step->fp_known && step->fp >= step->sp && step->fp % WORD == 0 &&
	       step->fp - step->sp <= (uint64_t)(uint32_t)step->blob.frame_size * WORD &&
	       sf_hotspot_record(step, step->fp, ret);
}

/* The note is of this moment, the stack may be a copy of an earlier one: the method must fit. */
static bool fits(const struct sf_hotspot_step *step, const struct sf_hotspot_caller *caller)
{
	struct sf_blob blob;
	uint64_t behind;

	return sf_hotspot_holds(step->hotspot, caller->pc) &&
	       sf_hotspot_find(step, caller->pc, &blob) &&
	       blob.class == SF_BLOB_COMPILED && blob.frame_size >= 2 &&
	       sf_read_u64(step->memory, caller->sp + (uint64_t)(blob.frame_size - 1) * WORD,
			   &behind) &&
	       sf_hotspot_is_return(step, behind);
}

/*
 * The method in the loop, as long as nothing on the stack says where that was. False: it is another routine, or says it. Not
 * inlined: a handler's stack is small, and what this takes would stay there while other steps are tried.
 */
__attribute__((noinline)) static bool is_at_poll(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const uint64_t thread = sf_hotspot_java_thread(step);
	uint64_t store;
	uint32_t field;

	return thread && begins_with_room(step) && find_fetch(step, &store, &field) &&
	       step->pc <= store && leave_frame(step, ret) &&
	       sf_read_u64(&step->outside, thread + field, &ret->pc) && fits(step, ret);
}

/* --- any call into the machine --- */

/* Where the machine's own code calls into it: with a frame of known size, once that is made. */
enum sf_step sf_hotspot_step_runtime(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;
	enum sf_step taken;

	if (step->cursor->exact && step->blob.frame_size >= 2) {
		step->blob.entry = step->blob.code_start;
		if (is_at_poll(step, &caller))
			return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
		if (in_finder(step, &caller))
			return sf_hotspot_take(step, &caller, SF_VIA_GUESS, why);
		if (goes_to_handler(step, &caller))
			return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
		/* Behind "leave" the frame pointer is the caller's, and may lie in what this frame was. */
		if (sf_hotspot_top_compiled(step, &caller) || sf_hotspot_follow_to_return(step, &caller) ||
		    by_own_frame_pointer(step, &caller))
			return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	}
	if (is_whole(step)) {
		taken = sf_hotspot_step_by_size(step, why);
		if (taken == SF_STEP_TAKEN || *why == SF_END_COPY)
			return taken;
	}
	return sf_hotspot_step_routine(step, why);
}
