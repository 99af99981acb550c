/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completing the stack of a thread that sleeps and was not interrupted. Its walk may need a
 * register that only the thread knows. If an earlier, complete walk of the same thread passed
 * through a frame at the place in which this one ended, and every return address from there on
 * still stands in the copied stack where that walk found it, then the callers are the same: they
 * are taken over, and marked (SF_VIA_EARLIER).
 */
#ifndef SF_SESSION_EARLIER_H
#define SF_SESSION_EARLIER_H

#include "frozen/walk.h"

struct sf_earlier {
	struct sf_frame *frames; /* of the last complete walk, innermost first; from malloc */
	uint32_t n_frames, capacity;
};

void sf_earlier_deinit(struct sf_earlier *earlier);

/* Keeps a complete trace. Without memory the old one is forgotten. */
void sf_earlier_keep(struct sf_earlier *earlier, const struct sf_trace *trace);

/* Appends the callers to a trace that ended with SF_END_REGISTER; true when it is complete now. */
bool sf_earlier_complete(const struct sf_earlier *earlier, const struct sf_still *still,
			 struct sf_trace *trace);

#endif
