/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer part of a thread's stack is mostly that of its last sample. How many frames that are, and what the
 * recording calls the stack up to each of them, so that they need not be looked up again.
 */
#ifndef SF_SESSION_OUTER_H
#define SF_SESSION_OUTER_H

#include "frozen/walk.h"

struct sf_outer {
	struct sf_frame *frames;  /* of the last complete stack, outermost first; from malloc, as below */
	uint32_t *stacks;         /* beside them: the number in the recording, up to and with that frame */
	uint32_t n, capacity;
	uint32_t n_same;          /* of the last sf_outer_match */
};

void sf_outer_deinit(struct sf_outer *outer);

/*
 * Looks how many of a trace's outermost frames are those of the last one that was kept: that many of
 * `stacks` are right, and there is room for the rest, which are to be put there. The trace, as it was walked or as
 * it came, is kept in its place; not one that did not end at the root. False: no memory.
 */
bool sf_outer_match(struct sf_outer *outer, const struct sf_trace *trace);

#endif
