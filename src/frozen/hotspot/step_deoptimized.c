/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping over frames that are on the move: those of a method that is being deoptimized, and
 * those of a virtual thread, some of which are in the heap.
 */
#include <string.h>

#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define MAX_VFRAMES 256
#define MIN_ENTRY_WORDS 3    /* of a ContinuationEntry: its pointers */
#define MAX_ENTRY_WORDS 16
#define FETCH_SIZE 7         /* bytes of mov rsp, [r15 + n] */
#define PIECE 128
#define MAX_PIECES 64
#define WORD 8

/*
 * The frames of a deoptimized method are being replaced by interpreter frames, which are
 * skeletons yet: what they will be is in a vframeArray (HotSpot: runtime/vframeArray.hpp).
 * `frames`: of it.
 */
struct unpacking {
	uint64_t array, first, n;
	struct sf_hotspot_caller caller;
};

/*
 * A `frame` in it starts with sp and pc and ends with fp and the unextended sp
 * (runtime/frame.hpp). Where the method's frame is gone and no skeleton is there yet, the caller's sp
 * is the thread's.
 */
static bool read_unpacking(const struct sf_hotspot_step *step,
			   enum sf_hotspot_field_name field, struct unpacking *ret)
{
	const struct sf_hotspot *hotspot = step->hotspot;
	const struct sf_hotspot_field *original = &hotspot->fields[SF_HS_VFRAMES_ORIGINAL];
	const struct sf_hotspot_field *caller = &hotspot->fields[SF_HS_VFRAMES_CALLER];
	const uint64_t frame_size = caller->at - original->at;
	uint32_t array_size = hotspot->sizes[SF_HS_SIZE_VFRAMES];
	uint32_t element_size = hotspot->sizes[SF_HS_SIZE_VFRAME];

	if (!original->width || !caller->width || frame_size < 32 || frame_size > 256 ||
	    array_size <= element_size || !element_size || !sf_hotspot_java_thread(step) ||
	    !sf_hotspot_get(hotspot, &step->outside, field, sf_hotspot_java_thread(step),
			    &ret->array) ||
	    !ret->array ||
	    !sf_hotspot_get(hotspot, &step->outside, SF_HS_VFRAMES_N, ret->array, &ret->n) ||
	    !ret->n || ret->n > MAX_VFRAMES)
		return false;
	ret->first = ret->array + array_size - element_size;
	ret->caller.fp_known = true;
	return sf_read_u64(&step->outside, ret->array + caller->at + 8, &ret->caller.pc) &&
	       sf_read_u64(&step->outside, ret->array + caller->at + frame_size - 16,
			   &ret->caller.fp) &&
	       sf_read_u64(&step->outside, ret->array + caller->at + frame_size - 8,
			   &ret->caller.sp) &&
	       ret->caller.sp >= step->sp && sf_hotspot_holds(hotspot, ret->caller.pc);
}

/*
 * The record that ends the frame of the routine that replaces them. It aligns sp before it calls the
 * machine: then the frame is a word further up than its size says, and its fp tells.
 */
static bool own_record(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const uint64_t at = step->sp + ((uint64_t)(uint32_t)step->blob.frame_size - 2) * WORD;

	return step->blob.frame_size >= 2 &&
	       sf_hotspot_record(step, step->fp_known && step->fp == at + WORD ? step->fp : at, ret);
}

/* Where the frame of a pc and sp goes on; sf_hotspot_real_pc() has what a deoptimized one differs in. */
static uint64_t goes_on_at(const struct sf_hotspot_step *step, uint64_t pc, uint64_t sp)
{
	struct sf_blob blob;

	return sf_hotspot_find(step, pc - 1, &blob) ? sf_hotspot_real_pc(step, &blob, pc, sp) : pc;
}

/*
 * Whether the record is of this compiled frame. That of an earlier deoptimization may end in the same
 * place: then the frame's pc is another one, or its caller's.
 */
static bool is_replaced(const struct sf_hotspot_step *step, const struct unpacking *unpacking,
			const struct sf_hotspot_caller *frame)
{
	const uint64_t noted_pc = unpacking->array + step->hotspot->fields[SF_HS_VFRAMES_ORIGINAL].at + 8;
	struct sf_blob blob;
	uint64_t end, pc, below;

	if (!sf_hotspot_find(step, frame->pc - 1, &blob) || blob.frame_size <= 0)
		return false;
	end = frame->sp + (uint64_t)(uint32_t)blob.frame_size * WORD;
	return end == unpacking->caller.sp && sf_read_u64(&step->outside, noted_pc, &pc) &&
	       pc == goes_on_at(step, frame->pc, frame->sp) &&
	       sf_read_u64(step->memory, end - WORD, &below) &&
	       goes_on_at(step, below, end) == unpacking->caller.pc;
}

/*
 * The stack may be a copy of an earlier moment than what the thread notes. Both are of the same
 * one if the frames that are replaced end where the noted ones do: the skeletons, which the
 * frame pointer leads through, or, before they are made, the compiled method's frame.
 */
static bool is_on_stack(const struct sf_hotspot_step *step, const struct unpacking *unpacking)
{
	const struct sf_hotspot *hotspot = step->hotspot;
	struct sf_hotspot_caller above;
	uint64_t fp, end;

	if (!own_record(step, &above))
		return false;
	if (above.pc < hotspot->interpreter_start || above.pc >= hotspot->interpreter_end)
		return is_replaced(step, unpacking, &above);
	fp = above.fp;
	for (uint64_t i = 1; i < unpacking->n; i++) {
		if (fp < above.sp || !sf_read_u64(step->memory, fp, &fp))
			return false;
	}
	return sf_read_u64(step->memory, fp - WORD, &end) && end == unpacking->caller.sp;
}

/* The deoptimization in progress, or the last one: HotSpot keeps its record until the thread's next one. */
static bool find_unpacking(const struct sf_hotspot_step *step, struct unpacking *ret)
{
	if (step->cursor->exact) /* the frames are anything between old and new */
		return read_unpacking(step, SF_HS_THREAD_VFRAMES, ret);
	return (read_unpacking(step, SF_HS_THREAD_VFRAMES, ret) && is_on_stack(step, ret)) ||
	       (read_unpacking(step, SF_HS_THREAD_LAST_VFRAMES, ret) && is_on_stack(step, ret));
}

static void note_unpacked(const struct sf_hotspot_step *step, const struct unpacking *unpacking)
{
	const struct sf_hotspot *hotspot = step->hotspot;
	struct sf_trace *trace = step->cursor->trace;

	for (uint64_t i = 0; i < unpacking->n && trace->n_frames < trace->capacity; i++) {
		uint64_t element = unpacking->first + i * hotspot->sizes[SF_HS_SIZE_VFRAME];
		uint64_t address = 0, bci = (uint64_t)-1;
		struct sf_method method;

		if (!sf_hotspot_get(hotspot, &step->outside, SF_HS_VFRAME_METHOD, element,
				    &address) ||
		    !sf_hotspot_find_method(step, address, &method))
			return;
		sf_hotspot_get(hotspot, &step->outside, SF_HS_VFRAME_BCI, element, &bci);
		trace->frames[trace->n_frames++] = (struct sf_frame){
			.pc = unpacking->caller.pc, .sp = step->sp, .address = unpacking->caller.pc,
			.via = SF_VIA_RUNTIME, .kind = SF_KIND_INTERPRETED, .runtime = step->frame->runtime, .token = address,
			.id = sf_method_id(&method), .bci = (int32_t)bci,
		};
	}
}

enum sf_step sf_hotspot_step_deopt(struct sf_hotspot_step *step, enum sf_end *why)
{
	struct sf_hotspot_caller caller;
	struct unpacking unpacking;

	if (!find_unpacking(step, &unpacking)) {
		if (!step->cursor->exact && own_record(step, &caller) &&
		    sf_hotspot_holds(step->hotspot, caller.pc))
			return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
		return sf_hotspot_step_runtime(step, why);
	}
	note_unpacked(step, &unpacking);
	return sf_hotspot_take(step, &unpacking.caller, SF_VIA_RUNTIME, why);
}

/*
 * Where the thread says that its continuation was entered. It says so of this moment; the stack
 * may be a copy of an earlier one: then the frame below the entry must be the same in both.
 */
static bool is_entry(const struct sf_hotspot_step *step, uint64_t entry, uint64_t size)
{
	struct sf_reader live = step->outside;
	uint64_t then[2], now[2];

	live.window_size = 0;
	return entry > step->sp && entry - step->sp < SF_HOTSPOT_MAX_FRAME && entry % WORD == 0 &&
	       sf_read(step->memory, then, entry + size, sizeof(then)) &&
	       sf_read(&live, now, entry + size, sizeof(now)) && then[0] == now[0] &&
	       then[1] == now[1];
}

/*
 * Whether the word at `at` is a return address behind the call at `entered`, which entered a
 * continuation. The call instruction of a compiled method names its target. Frames that are half made
 * return behind another call.
 */
static bool called_entry(const struct sf_hotspot_step *step, uint64_t at, uint64_t entered)
{
	struct sf_blob from, into;
	uint64_t behind, target;

	if (!sf_read_u64(step->memory, at, &behind) || !sf_hotspot_is_return(step, behind))
		return false;
	if (!step->cursor->still->arch->is_behind_call(&step->outside, behind, &target) || !target ||
	    !sf_hotspot_find(step, target, &into) ||
	    !sf_hotspot_find(step, behind - 1, &from))
		return true;
	return (into.class != SF_BLOB_COMPILED && into.class != SF_BLOB_WRAPPER) ||
	       into.address == from.address ||
	       (entered >= into.code_start && entered < into.code_end);
}

/*
 * The offset in a thread of the entry of its continuation; -1: not found. JDK 21 exports neither this
 * offset nor the size of the entry. The code to which the oldest frame returns begins with
 * mov rsp, [r15 + n] (HotSpot: StubGenerator::generate_cont_thaw); n is the offset. While frames are
 * being fetched, the thread is further on in that code, or in a copy of it nearby.
 */
static int32_t entry_field(const struct sf_hotspot_step *step)
{
	uint8_t code[PIECE];
	int32_t field;
	uint64_t at = step->pc;

	for (unsigned n = 0; n < MAX_PIECES; n++) {
		if (!sf_read(&step->outside, code, at, sizeof(code)))
			return -1;
		for (unsigned i = 0; i + FETCH_SIZE <= PIECE; i++) {
			memcpy(&field, code + i + 3, sizeof(field));
			if (code[i] == 0x49 && code[i + 1] == 0x8b && code[i + 2] == 0xa7)
				return field;
		}
		at = n == 0 ? step->blob.code_start : at + PIECE - FETCH_SIZE + 1;
		if (at + PIECE > step->blob.code_end)
			return -1;
	}
	return -1;
}

static uint64_t untold_entry(const struct sf_hotspot_step *step)
{
	const uint64_t thread = sf_hotspot_java_thread(step);
	const int32_t field = thread ? entry_field(step) : -1;
	uint64_t entry;

	return field > 0 && sf_read_u64(&step->outside, thread + (uint64_t)field, &entry) ? entry : 0;
}

/* No word of an entry is an address of code: the frame of who runs it is where the first one is. */
static bool behind_entry(const struct sf_hotspot_step *step, uint64_t entry, unsigned *n_words,
			 struct sf_hotspot_caller *ret)
{
	for (*n_words = MIN_ENTRY_WORDS; *n_words <= MAX_ENTRY_WORDS; ++*n_words) {
		if (sf_hotspot_record(step, entry + *n_words * WORD, ret) &&
		    sf_hotspot_is_return(step, ret->pc))
			return sf_hotspot_leads_on(step, ret);
	}
	return false;
}

/* The code between the entry and who runs it is not named: nothing says where it is. */
static enum sf_step step_untold(struct sf_hotspot_step *step, enum sf_end *why)
{
	const uint64_t entry = untold_entry(step);
	struct sf_hotspot_caller caller;
	unsigned n_words;

	step->frame->kind = SF_KIND_HEAP;
	if (entry > step->sp && behind_entry(step, entry, &n_words, &caller) &&
	    is_entry(step, entry, n_words * WORD))
		return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
	if (behind_entry(step, step->sp, &n_words, &caller))
		return sf_hotspot_take(step, &caller, SF_VIA_GUESS, why);
	return sf_hotspot_step_runtime(step, why);
}

/*
 * A virtual thread that was resumed has only its youngest frames on the stack; the oldest of them
 * returns to a stub that would fetch more. Below it is the entry of the continuation
 * (ContinuationEntry), then the frame of the code that runs it.
 */
enum sf_step sf_hotspot_step_continuation(struct sf_hotspot_step *step, enum sf_end *why)
{
	const struct sf_hotspot *hotspot = step->hotspot;
	/* Stacks are aligned to two words: HotSpot, ContinuationEntry::size(). */
	const uint64_t size = (hotspot->sizes[SF_HS_SIZE_CONTINUATION] + 2 * WORD - 1) & ~(2 * WORD - 1ull);
	struct sf_hotspot_caller caller = {
		.sp = step->sp, .fp = step->sp + size, .fp_known = true,
	};
	uint64_t entry = 0;

	if (step->cursor->exact)
		return sf_hotspot_step_runtime(step, why);
	if (!size || size > 4096 ||
	    !sf_hotspot_get(hotspot, &step->outside, SF_HS_CONTINUATION_RETURN, 0, &caller.pc) ||
	    !sf_hotspot_holds(hotspot, caller.pc))
		return step_untold(step, why);
	sf_hotspot_get(hotspot, &step->outside, SF_HS_THREAD_CONTINUATION, sf_hotspot_java_thread(step),
		       &entry);
	/* While frames are being fetched, those between here and the entry are half made. */
	if (is_entry(step, entry, size)) {
		caller.sp = entry;
		caller.fp = entry + size;
	} else if (entry != step->sp && !called_entry(step, caller.fp + WORD, caller.pc)) {
		return sf_hotspot_step_runtime(step, why);
	}
	step->frame->kind = SF_KIND_HEAP;
	step->sp--; /* the frame that stands for those in the heap has no room on the stack */
	return sf_hotspot_take(step, &caller, SF_VIA_RUNTIME, why);
}
