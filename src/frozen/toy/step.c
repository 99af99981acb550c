/* SPDX-License-Identifier: Apache-2.0 */
/* Stepping over the frames of the runtime for tests. All signal-safe. */
#include "frozen/toy/toy.h"
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define RSP 7
#define WORD 8

static const struct sf_region *find(const struct sf_runtime *runtime, uint64_t pc)
{
	const struct sf_toy *toy = (const struct sf_toy *)runtime;

	for (unsigned i = 0; i < 2; i++) {
		if (pc >= toy->codes[i].start && pc < toy->codes[i].end)
			return &toy->codes[i];
	}
	return NULL;
}

/* Words that lie above the stack pointer and below the return address. */
static unsigned words_at(uint64_t offset)
{
	if (offset >= SF_TOY_POPPED)
		return 0;
	return (offset >= SF_TOY_PUSHED_METHOD) + (offset >= SF_TOY_PUSHED_INDEX) +
	       (offset >= SF_TOY_PUSHED_PADDING);
}

/* The frame's key: the method and the index of its bytecode. Before both are there it is a stub. */
static void set_key(const struct sf_cursor *cursor, unsigned n_words, struct sf_frame *frame)
{
	const uint64_t sp = cursor->regs.r[RSP];
	uint64_t method, index;

	frame->kind = SF_KIND_STUB;
	frame->bci = -1;
	if (n_words < 2 ||
	    !sf_read_u64(&cursor->still->memory, sp + (n_words - 1) * WORD, &method) ||
	    !sf_read_u64(&cursor->still->memory, sp + (n_words - 2) * WORD, &index))
		return;
	frame->kind = SF_KIND_INTERPRETED;
	frame->token = method;
	frame->bci = (int32_t)index;
}

static enum sf_step step(const struct sf_runtime *runtime, struct sf_cursor *cursor,
			 enum sf_end *why)
{
	const struct sf_region *code = find(runtime, cursor->regs.pc - !cursor->exact);
	const unsigned n_words = code ? words_at(cursor->regs.pc - code->start) : 0;
	const uint64_t at = cursor->regs.r[RSP] + n_words * WORD;
	uint64_t caller;

	*why = SF_END_RUNTIME;
	if (!code || cursor->still->arch != &sf_arch_x86_64 || !cursor->trace->n_frames)
		return SF_STEP_FAILED;
	set_key(cursor, n_words, &cursor->trace->frames[cursor->trace->n_frames - 1]);
	if (!sf_read_u64(&cursor->still->memory, at, &caller)) {
		*why = sf_why_unread(&cursor->still->memory, at, WORD);
		return SF_STEP_FAILED;
	}
	cursor->regs.pc = caller;
	sf_reg_set(&cursor->regs, RSP, at + WORD);
	cursor->exact = false;
	cursor->via = SF_VIA_RUNTIME;
	return SF_STEP_TAKEN;
}

/* The innermost frame, which the thread has noted. */
static bool resume(const struct sf_runtime *runtime, struct sf_cursor *cursor)
{
	const struct sf_toy *toy = (const struct sf_toy *)runtime;
	const struct sf_reader outside = sf_reader_outside(&cursor->still->memory);
	const struct sf_trace *trace = cursor->trace;
	const uint64_t handle = cursor->still->handles[runtime->slot];
	const uint64_t last = trace->n_frames ? trace->frames[trace->n_frames - 1].sp : 0;
	uint64_t top;

	if (!handle || !sf_read_u64(&outside, handle + offsetof(struct sf_toy_thread, top), &top) ||
	    top - WORD <= last || top % WORD)
		return false;
	cursor->regs.known = 0;
	cursor->regs.pc = toy->codes[0].start + SF_TOY_RETURN;
	sf_reg_set(&cursor->regs, RSP, top - WORD);
	cursor->exact = false;
	cursor->via = SF_VIA_ANCHOR;
	return true;
}

static bool is_thread(const struct sf_runtime *runtime, const struct sf_reader *memory,
		      uint64_t handle, int32_t tid)
{
	uint64_t found;

	(void)runtime;
	return sf_read_u64(memory, handle + offsetof(struct sf_toy_thread, tid), &found) &&
	       found == (uint64_t)tid;
}

const struct sf_runtime_ops sf_toy_ops = {
	.find = find,
	.step = step,
	.resume = resume,
	.is_thread = is_thread,
};
