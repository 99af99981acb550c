/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer part of a thread's stack is mostly that of its last sample. How many frames that are, and what the
 * recording calls the stack up to each of them, so that they need not be looked up again.
 */
#ifndef SF_SESSION_STACK_SUFFIX_H
#define SF_SESSION_STACK_SUFFIX_H

#include "frozen/trace.h"

struct sf_stack_suffix {
	struct sf_frame *frames;  /* of the last complete stack, outermost first; from malloc, as below */
	uint32_t *stacks;         /* beside them: the number in the recording, up to and with that frame */
	uint32_t n, capacity;
	uint32_t n_same;          /* of the last sf_stack_suffix_match */
};

void sf_stack_suffix_deinit(struct sf_stack_suffix *suffix);

/*
 * Counts the outermost frames of a trace that equal those of the last trace. The same number of elements
 * of `stacks` is valid afterwards; the caller fills in the others, for which there is room. The given trace
 * then replaces the last one; a trace that did not end at the root counts as empty. False: no memory.
 */
bool sf_stack_suffix_match(struct sf_stack_suffix *suffix, const struct sf_trace *trace);

#endif
