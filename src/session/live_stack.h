/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer part of a stack that was copied only in part, read while the thread runs on.
 *
 * A walk of such a copy ends at a frame whose caller stands behind the copy's end. The words there are read from the
 * thread's memory now. They are those of the copy's moment if the thread has not returned from that frame since. Two things are
 * evidence for that. The outer part of this stack was the same in many whole stacks in a row (SF_STILL_STEADY). The thread's
 * last whole walk came through the same frames from there on, each with the same pc and sp, up to the root. So these frames were
 * on the stack before the copy was made, and are there now. Other frames are not used. This is evidence, and no proof: the first
 * frame behind the copy's end is marked as a guess.
 */
#ifndef SF_SESSION_LIVE_STACK_H
#define SF_SESSION_LIVE_STACK_H

#include "frozen/still.h"
#include "session/stack_suffix.h"

/* After a walk of this still has ended with SF_END_COPY: walks again. True: the trace is whole now. Else it is as before. */
bool sf_live_stack_walk(const struct sf_still *still, const struct sf_stack_suffix *suffix, struct sf_trace *trace);

#endif
