/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where compiled Java code was interrupted and its frame is not there, or not whole: in a
 * method's first instructions, and in its last. With small methods that is a third of all
 * samples. Which instructions HotSpot's compilers emit there is told in docs/hotspot.md.
 */
#include <string.h>

#include "frozen/hotspot/step.h"

#include "frozen/frozen.h"

#define WORD 8
#define MAX_PROLOGUE 96
#define MAX_INSTRUCTIONS 24
#define NEAR_ENTRY 32
#define BEFORE 8             /* bytes before pc that patterns look at */
#define BEHIND 24
#define WRAPPER_END 56       /* longest from the end of a wrapper's frame to behind its return */

/* Bytes at a place, fewer where no more can be read. */
struct code {
	uint8_t bytes[MAX_PROLOGUE + 32];
	unsigned n;
};

static bool starts_with(const uint8_t *code, unsigned left, const uint8_t *pattern, unsigned n)
{
	unsigned same = 0;

	while (left >= n && same < n && code[same] == pattern[same])
		same++;
	return same == n;
}

/* The frame as far as it is made: what sp is below the return address, and where fp was put. */
struct prologue {
	uint64_t size;       /* from sp to behind the return address */
	uint64_t saved_fp;   /* distance of fp's slot below that end; 0: not saved yet */
};

static uint32_t u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The instructions of prologues. To add one: a line here, and its effect below. */
enum effect { NOTHING, PUSH_FP, PUSH, POP, SUB_8, SUB_32, STORE_FP_8, STORE_FP_32 };

static const struct instruction {
	uint8_t size, n;     /* of the whole, of the pattern */
	uint8_t pattern[4];
	enum effect effect;
} instructions[] = {
	{ 7, 3, { 0x89, 0x84, 0x24 }, NOTHING },             /* mov [rsp+d32], eax: stack bang */
	{ 1, 1, { 0x55 }, PUSH_FP },                         /* push rbp */
	{ 1, 1, { 0x52 }, NOTHING },                         /* push rdx: the return address itself */
	/* the return address is copied, in JDK 17's _rethrow_Java: push [rsp+d8]; pop [rsp] */
	{ 5, 4, { 0x48, 0xff, 0x74, 0x24 }, PUSH },
	{ 4, 4, { 0x48, 0x8f, 0x04, 0x24 }, POP },
	{ 3, 3, { 0x48, 0x8b, 0xec }, NOTHING },             /* mov rbp, rsp */
	{ 3, 3, { 0x48, 0x89, 0xe5 }, NOTHING },
	{ 4, 3, { 0x48, 0x83, 0xec }, SUB_8 },               /* sub rsp, i8 */
	{ 7, 3, { 0x48, 0x81, 0xec }, SUB_32 },              /* sub rsp, i32 */
	{ 5, 4, { 0x48, 0x89, 0x6c, 0x24 }, STORE_FP_8 },    /* mov [rsp+d8], rbp */
	{ 8, 4, { 0x48, 0x89, 0xac, 0x24 }, STORE_FP_32 },   /* mov [rsp+d32], rbp */
	{ 7, 3, { 0x49, 0x89, 0x87 }, NOTHING },             /* mov [r15+d32], rax; rdx: exceptions */
	{ 7, 3, { 0x49, 0x89, 0x97 }, NOTHING },
	{ 1, 1, { 0x90 }, NOTHING },                         /* nops */
	{ 2, 2, { 0x66, 0x90 }, NOTHING },
	{ 3, 3, { 0x0f, 0x1f, 0x00 }, NOTHING },
	{ 4, 3, { 0x0f, 0x1f, 0x40 }, NOTHING },
	{ 5, 3, { 0x0f, 0x1f, 0x44 }, NOTHING },
	{ 6, 4, { 0x66, 0x0f, 0x1f, 0x44 }, NOTHING },
	{ 7, 3, { 0x0f, 0x1f, 0x80 }, NOTHING },
	{ 8, 3, { 0x0f, 0x1f, 0x84 }, NOTHING },
	{ 9, 4, { 0x66, 0x0f, 0x1f, 0x84 }, NOTHING },
};

static void apply(struct prologue *prologue, const struct instruction *instruction,
		  const uint8_t *code)
{
	switch (instruction->effect) {
	case NOTHING:
		break;
	case PUSH_FP:
		prologue->size += WORD;
		prologue->saved_fp = prologue->size;
		break;
	case PUSH:
		prologue->size += WORD;
		break;
	case POP:
		prologue->size -= prologue->size > WORD ? WORD : 0;
		break;
	case SUB_8:
		prologue->size += code[3] < 0x80 ? code[3] : 0;
		break;
	case SUB_32:
		prologue->size += u32(code + 3) & (SF_HOTSPOT_MAX_FRAME - 1);
		break;
	case STORE_FP_8:
		prologue->saved_fp = prologue->size - code[4];
		break;
	case STORE_FP_32:
		prologue->saved_fp = prologue->size - u32(code + 4);
		break;
	}
}

static const struct instruction *find_instruction(const uint8_t *code, unsigned left)
{
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		const struct instruction *instruction = &instructions[i];

		if (left >= instruction->size &&
		    starts_with(code, left, instruction->pattern, instruction->n))
			return instruction;
	}
	return NULL;
}

/* Runs the prologue up to `distance` from the entry; false: something else stands before. */
static bool simulate(struct code *code, unsigned distance, struct prologue *ret)
{
	unsigned at = 0;

	*ret = (struct prologue){ .size = WORD };
	/* The entry of a method that may no longer be entered is a jump, over the stack bang. */
	if (code->n > 7 && code->bytes[0] == 0xe9) {
		if (code->bytes[7] != 0x55 && distance < 5)
			return false;
		at = code->bytes[7] == 0x55 ? 7 : 5;
	}
	for (unsigned i = 0; i < MAX_INSTRUCTIONS && at < distance; i++) {
		const struct instruction *instruction =
			find_instruction(code->bytes + at, code->n - at);

		if (!instruction)
			return false;
		apply(ret, instruction, code->bytes + at);
		at += instruction->size;
	}
	return at >= distance;
}

/*
 * The way from a compiled call to a method that is not compiled: mov rbx, Method; jmp, behind the code of the caller
 * (HotSpot: cpu/x86/compiledIC_x86.cpp).
 */
#define STUB_MOVE 10

static bool is_static_call_stub(const struct sf_hotspot_step *step, uint64_t at,
				uint64_t *method_ret)
{
	uint8_t code[STUB_MOVE + 1];

	if (!sf_read(&step->outside, code, at, sizeof(code)) || code[0] != 0x48 ||
	    code[1] != 0xbb || code[STUB_MOVE] != 0xe9)
		return false;
	memcpy(method_ret, code + 2, sizeof(*method_ret));
	return true;
}

bool sf_hotspot_in_static_call_stub(const struct sf_hotspot_step *step)
{
	uint64_t at = step->pc, address;
	struct sf_method method;
	uint8_t first;

	if (!sf_read(&step->outside, &first, at, 1))
		return false;
	at -= first == 0xe9 ? STUB_MOVE : 0;
	return at >= step->blob.code_start && is_static_call_stub(step, at, &address) &&
	       sf_hotspot_find_method(step, address, &method);
}

bool sf_hotspot_calls_by_stub(const struct sf_hotspot_step *step, uint64_t pc, uint64_t method)
{
	uint64_t target, there;

	return sf_hotspot_holds(step->hotspot, pc) &&
	       step->cursor->still->arch->is_behind_call(&step->outside, pc, &target) && target &&
	       is_static_call_stub(step, target, &there) && there == method;
}

static void read_code(const struct sf_hotspot_step *step, uint64_t from, unsigned want,
		      struct code *ret)
{
	uint64_t left = step->blob.code_end - from;

	ret->n = left < want ? (unsigned)left : want;
	if (!sf_read(&step->outside, ret->bytes, from, ret->n))
		ret->n = 0;
}

/*
 * Code for a loop that the interpreter is in has an entry for that, behind the method's own, with
 * the same prologue (HotSpot: TemplateTable::branch; c1/c1_LIRAssembler.cpp, osr_entry;
 * opto/output.cpp, PhaseOutput::Output).
 */
static uint64_t last_entry(const struct sf_hotspot_step *step)
{
	const struct sf_blob *blob = &step->blob;

	return blob->loop_entry && step->pc >= blob->loop_entry ? blob->loop_entry : blob->entry;
}

static bool in_prologue(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	const struct sf_blob *blob = &step->blob;
	const uint64_t entry = last_entry(step), distance = step->pc - entry;
	struct prologue prologue;
	struct code code;

	if (step->pc <= entry)
		return sf_hotspot_bare(step, step->sp, ret);
	if (distance >= MAX_PROLOGUE ||
	    (distance > NEAR_ENTRY &&
	     (blob->frame_complete < 0 ||
	      step->pc >= blob->code_start + (uint32_t)blob->frame_complete)))
		return false;
	read_code(step, entry, (unsigned)distance + 16, &code);
	if (code.n < distance || !simulate(&code, (unsigned)distance, &prologue))
		return false;
	if (!sf_hotspot_bare(step, step->sp + prologue.size - WORD, ret))
		return false;
	if (prologue.saved_fp && prologue.saved_fp <= prologue.size)
		ret->fp_known = sf_read_u64(step->memory, step->sp + prologue.size -
					    prologue.saved_fp, &ret->fp);
	return true;
}

/* The bytes at pc and before pc in an epilogue without its frame. 0 in `before`: any byte. */
enum gone { POPPED, POP_FP, LEAVE };

static const struct epilogue {
	uint8_t n, at[6];
	uint8_t before[1];   /* the byte before pc */
	int8_t behind;       /* what stands `behind` bytes further on; below 0: at most BEFORE before */
	uint8_t then[4], n_then;
	uint8_t wrapper;     /* only in wrappers of native methods */
	uint8_t gone;
} epilogues[] = {
	{ .n = 1, .at = { 0xc3 }, .gone = POPPED },                                   /* ret */
	/* pop rbp; then ret, or a poll of some JDK's kind, or vzeroupper */
	{ .n = 2, .at = { 0x5d, 0xc3 }, .gone = POP_FP },
	{ .n = 3, .at = { 0x5d, 0x49, 0x3b }, .gone = POP_FP },
	{ .n = 3, .at = { 0x5d, 0x4d, 0x8b }, .gone = POP_FP },
	{ .n = 3, .at = { 0x5d, 0x85, 0x05 }, .gone = POP_FP },
	{ .n = 4, .at = { 0x5d, 0xc5, 0xf8, 0x77 }, .gone = POP_FP },
	{ .n = 3, .at = { 0x5d, 0x41, 0x85 }, .gone = POP_FP },
	/* a method that hands an exception on: pop rbp; jmp */
	{ .n = 2, .at = { 0x5d, 0xe9 }, .gone = POP_FP },
	{ .n = 1, .at = { 0xe9 }, .before = { 0x5d }, .gone = POPPED },
	/* and the routine that it goes to: pop rbp; pop rdx; jmp r10 */
	{ .n = 3, .at = { 0x5d, 0x5a, 0x41 }, .gone = POP_FP },
	{ .n = 4, .at = { 0x5a, 0x41, 0xff, 0xe2 }, .gone = POPPED },
	/* the poll: cmp rsp, [r15+d]; ja (17 and later), mov r10, [r15+d]; test (11), test (8) */
	{ .n = 3, .at = { 0x49, 0x3b, 0x67 }, .before = { 0x5d }, .gone = POPPED },
	{ .n = 3, .at = { 0x49, 0x3b, 0xa7 }, .before = { 0x5d }, .gone = POPPED },
	{ .n = 3, .at = { 0x49, 0x3b, 0x67 }, .before = { 0x77 }, .gone = POPPED },
	{ .n = 3, .at = { 0x49, 0x3b, 0xa7 }, .before = { 0x77 }, .gone = POPPED },
	/* ... and where C2 has put another block before it: by the ret behind the ja */
	{ .n = 3, .at = { 0x49, 0x3b, 0x67 }, .behind = 10, .then = { 0xc3 }, .n_then = 1,
	  .gone = POPPED },
	{ .n = 3, .at = { 0x49, 0x3b, 0xa7 }, .behind = 13, .then = { 0xc3 }, .n_then = 1,
	  .gone = POPPED },
	{ .n = 2, .at = { 0x0f, 0x87 }, .behind = 6, .then = { 0xc3 }, .n_then = 1,
	  .gone = POPPED },
	/* a method that may use the stack's reserved zone asks whether it has: cmp rsp, [r15+d]; jb */
	{ .n = 2, .at = { 0x0f, 0x82 }, .behind = -8, .then = { 0x5d, 0x49, 0x3b, 0xa7 }, .n_then = 4,
	  .gone = POPPED },
	{ .n = 3, .at = { 0x4d, 0x8b, 0x97 }, .before = { 0x5d }, .gone = POPPED },
	{ .n = 4, .at = { 0x41, 0x85, 0x02, 0xc3 }, .gone = POPPED },
	{ .n = 2, .at = { 0x85, 0x05 }, .behind = 6, .then = { 0xc3 }, .n_then = 1,
	  .gone = POPPED },
	{ .n = 3, .at = { 0xc5, 0xf8, 0x77 }, .before = { 0x5d }, .gone = POPPED },
	/* out of line, when the poll hits: lea r10, [rip+d]; mov [r15+d], r10; jmp */
	{ .n = 3, .at = { 0x4c, 0x8d, 0x15 }, .behind = 7, .then = { 0x4d, 0x89, 0x97 },
	  .n_then = 3, .gone = POPPED },
	{ .n = 3, .at = { 0x4d, 0x89, 0x97 }, .behind = 7, .then = { 0xe9 }, .n_then = 1,
	  .gone = POPPED },
	/* wrappers of native methods; what follows is below */
	{ .n = 1, .at = { 0xc9 }, .wrapper = 1, .gone = LEAVE },
};

/* `code` starts BEFORE bytes before pc. */
static bool fits(const struct epilogue *epilogue, const struct code *code, bool wrapper)
{
	const uint8_t *at = code->bytes + BEFORE;
	const int left = (int)code->n - BEFORE, behind = epilogue->behind;

	if (epilogue->wrapper && !wrapper)
		return false;
	if (!starts_with(at, (unsigned)left, epilogue->at, epilogue->n) ||
	    (epilogue->before[0] && at[-1] != epilogue->before[0]))
		return false;
	return !epilogue->n_then ||
	       (left >= behind &&
		starts_with(at + behind, (unsigned)(left - behind), epilogue->then, epilogue->n_then));
}

/* The jump behind the out-of-line part of a poll. */
static bool is_poll_jump(const struct code *code)
{
	static const uint8_t store[] = { 0x4d, 0x89, 0x97 };
	const uint8_t *at = code->bytes + BEFORE;

	return code->n > BEFORE && at[0] == 0xe9 &&
	       starts_with(at - 7, 7, store, sizeof(store));
}

/*
 * Wrappers test for a pending exception, and in some JDKs poll, after their frame is gone: from
 * "leave" to "jne; ret", and the jump behind that to where exceptions are thrown.
 */
static bool in_wrapper_end(const struct sf_hotspot_step *step)
{
	const uint64_t before = step->pc - step->blob.code_start;
	unsigned leave = WRAPPER_END, back = before < WRAPPER_END ? (unsigned)before : WRAPPER_END;
	struct code code;

	read_code(step, step->pc - back, back + WRAPPER_END, &code);
	for (unsigned i = 0; i < back && i + 3 < code.n; i++) {
		const uint8_t *at = code.bytes + i;

		if (at[0] == 0xc9 && ((at[1] == 0x41 && at[2] == 0xf6) ||
				      (at[1] == 0x49 && (at[2] == 0x81 || at[2] == 0x83))))
			leave = i;
	}
	for (unsigned i = leave; i + 7 <= code.n; i++) {
		if (code.bytes[i] == 0x0f && code.bytes[i + 1] == 0x85 && code.bytes[i + 6] == 0xc3)
			return back > leave && back <= i + 7;
	}
	return false;
}

static bool in_epilogue(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	struct code code;

	if (step->pc - step->blob.code_start < BEFORE)
		return false;
	read_code(step, step->pc - BEFORE, BEFORE + BEHIND, &code);
	if (code.n <= BEFORE)
		return false;
	if (is_poll_jump(&code) || (step->blob.class == SF_BLOB_WRAPPER && in_wrapper_end(step)))
		return sf_hotspot_bare(step, step->sp, ret);
	for (size_t i = 0; i < sizeof(epilogues) / sizeof(epilogues[0]); i++) {
		if (!fits(&epilogues[i], &code, step->blob.class == SF_BLOB_WRAPPER))
			continue;
		if (epilogues[i].gone == POPPED)
			return sf_hotspot_bare(step, step->sp, ret);
		return sf_hotspot_record(step, epilogues[i].gone == LEAVE ? step->fp : step->sp,
					 ret);
	}
	return false;
}

bool sf_hotspot_top_compiled(const struct sf_hotspot_step *step, struct sf_hotspot_caller *ret)
{
	return (in_prologue(step, ret) || in_epilogue(step, ret)) &&
	       sf_hotspot_holds(step->hotspot, ret->pc);
}
