/* SPDX-License-Identifier: Apache-2.0 */
/* Walks on behind the end of a copy of a stack, where the last whole walk shows the way. */
#include "session/live_stack.h"

#include "frozen/unwind/walk.h"

bool sf_live_stack_walk(const struct sf_still *still, const struct sf_stack_suffix *suffix, struct sf_trace *trace)
{
	const struct sf_trace cut = *trace;
	struct sf_still live = *still;

	if (!(still->flags & SF_STILL_STEADY) || !cut.n_frames || !suffix->n)
		return false;
	live.memory.stack_end = 0;
	live.memory.copied = false;
	if (sf_walk(&live, trace) == SF_END_ROOT && trace->n_frames >= cut.n_frames &&
	    sf_stack_suffix_has(suffix, trace, cut.n_frames - 1)) {
		if (trace->n_frames > cut.n_frames)
			trace->frames[cut.n_frames].via = SF_VIA_GUESS;
		return true;
	}
	*trace = cut;
	return false;
}
