/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the sampler's thread that may never return: into a runtime that waits for one of its own threads. The thread that
 * stops the profile waits for it within a bound. Then it leaves the call behind: the profile ends without the sampler's thread,
 * which owns nothing of the agent's from then on.
 *
 *   the sampler's thread           the thread that stops
 *   sf_round_call_begin
 *   the call                       sf_round_call_leave: false while there is no call
 *   sf_round_call_end: true
 *   or                             sf_round_call_leave: true
 *   sf_round_call_end: false       sf_round_call_is_left: true
 *   undoes the call
 *   sf_round_call_is_undone        sf_round_call_is_left: false
 */
#ifndef SF_AGENT_SAMPLER_ROUND_CALL_H
#define SF_AGENT_SAMPLER_ROUND_CALL_H

#include <stdbool.h>

void sf_round_call_begin(void);
/* False: the call was left behind. The caller undoes it, touches nothing of the agent's, and says that it has. */
bool sf_round_call_end(void);
void sf_round_call_is_undone(void);

/* Leaves the call behind that is under way. False: there is none. */
bool sf_round_call_leave(void);
/* Whether a call was left behind in this process, and is not undone. A forked child has none. */
bool sf_round_call_is_left(void);

#endif
