/* SPDX-License-Identifier: Apache-2.0 */
/* The stack history: completes the trace of a sleeping thread from an earlier trace of it. */
#include "session/stack_history.h"

#include <stdlib.h>
#include <string.h>

void sf_stack_history_deinit(struct sf_stack_history *history)
{
	free(history->frames);
	*history = (struct sf_stack_history){ 0 };
}

void sf_stack_history_keep(struct sf_stack_history *history, const struct sf_trace *trace)
{
	history->n_frames = 0;
	if (trace->n_frames > history->capacity) {
		free(history->frames);
		history->frames = malloc(trace->n_frames * sizeof(*trace->frames));
		history->capacity = history->frames ? trace->n_frames : 0;
	}
	if (!history->frames)
		return;
	memcpy(history->frames, trace->frames, trace->n_frames * sizeof(*trace->frames));
	history->n_frames = trace->n_frames;
}

/*
 * The place in the earlier walk of the frame in which this one ended, or n_frames: the same stack
 * pointer, in code of the same file. Its pc may be another call of the same function.
 */
static uint32_t find_frame(const struct sf_stack_history *history, const struct sf_frame *frame)
{
	uint32_t i = 0;

	while (i < history->n_frames && (history->frames[i].sp != frame->sp ||
					 history->frames[i].image != frame->image))
		i++;
	return i;
}

/* x86-64: a call leaves its return address just below the caller's stack pointer. */
static bool still_stands(const struct sf_still *still, const struct sf_frame *frame)
{
	uint64_t pc;

	return still->arch->lr == SF_NO_REG && !(frame->flags & SF_FRAME_EXACT) &&
	       sf_read_u64(&still->memory, frame->sp - sizeof(pc), &pc) && pc == frame->pc;
}

bool sf_stack_history_complete(const struct sf_stack_history *history, const struct sf_still *still,
			 struct sf_trace *trace)
{
	uint32_t n_before = trace->n_frames;
	uint32_t at = n_before ? find_frame(history, &trace->frames[n_before - 1]) : 0;

	if (!n_before || at >= history->n_frames)
		return false;
	for (uint32_t i = at + 1; i < history->n_frames; i++) {
		if (trace->n_frames >= trace->capacity ||
		    !still_stands(still, &history->frames[i])) {
			trace->n_frames = n_before;
			return false;
		}
		trace->frames[trace->n_frames] = history->frames[i];
		trace->frames[trace->n_frames++].via = SF_VIA_EARLIER;
	}
	trace->end = SF_END_ROOT;
	return true;
}
