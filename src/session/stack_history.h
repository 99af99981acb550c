/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack history completes the trace of a thread that sleeps and was not interrupted. The walk of
 * such a thread may need the value of a register, which cannot be read. The callers are taken from an
 * earlier, complete trace of the same thread if two conditions hold. First, the earlier trace has a
 * frame at the place at which the new walk ended. Second, every return address from there on is still
 * in the copied stack where the earlier walk found it. Such callers are marked (SF_VIA_EARLIER).
 */
#ifndef SF_SESSION_STACK_HISTORY_H
#define SF_SESSION_STACK_HISTORY_H

#include "frozen/unwind/walk.h"

struct sf_stack_history {
	struct sf_frame *frames; /* of the last complete walk, innermost first; from malloc */
	uint32_t n_frames, capacity;
};

void sf_stack_history_deinit(struct sf_stack_history *history);

/* Keeps a complete trace. Without memory the old one is forgotten. */
void sf_stack_history_keep(struct sf_stack_history *history, const struct sf_trace *trace);

/* Appends the callers to a trace that ended with SF_END_REGISTER; true when it is complete now. */
bool sf_stack_history_complete(const struct sf_stack_history *history, const struct sf_still *still,
			 struct sf_trace *trace);

#endif
