/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler: the only thread that holds others. It sleeps on the wake-up. It walks each thread that
 * is held in a slot, and releases the thread. At its own ticks it polls the threads:
 *
 * - The last sample of a thread that did not run is extended.
 *
 * - A blocked thread is sampled without a signal (blocked_sample.h).
 *
 * - A running thread without a CPU clock of its own is requested. Several requests may be open at
 *   once (--per-tick), each with its time-out.
 *
 * The sampler blocks all signals. It allocates nothing between sf_slot_take and sf_slot_release. It
 * takes no lock that a thread of the target may own, because a held thread may own any lock.
 */
#ifndef SF_AGENT_SAMPLER_SAMPLER_H
#define SF_AGENT_SAMPLER_SAMPLER_H

#include "agent/agent.h"

/*
 * A round: a runtime walks its threads by its own means, and suspends them meanwhile. The sampler makes one at each of its
 * ticks (cpu-clock=tick), before its requests, and only while it holds no thread and no request is open. So a thread that
 * the runtime waits for never waits for the sampler. NULL: there are no rounds.
 */
struct sf_sampler_round {
	/* False: a call in it was left behind (below). It has been undone, and the sampler's thread ends. */
	bool (*make)(struct sf_agent *agent, uint64_t now_ns);
	/*
	 * By the thread that stops the profile, which has left a call of the round behind: makes losses of what the
	 * round has no samples for.
	 */
	void (*lose)(struct sf_agent *agent);
};
extern const struct sf_sampler_round *_Atomic sf_sampler_round;

/*
 * A call in a round that may never return: into a runtime that waits for one of its own threads. The thread that stops the
 * profile waits for it within a bound. Then it leaves the call behind: the profile ends without the sampler's thread, which owns
 * nothing of the agent's from then on.
 *
 *   the sampler's thread           the thread that stops
 *   sf_round_call_begin
 *   the call                       can leave no call behind: there is none
 *   sf_round_call_end: true
 *   or                             leaves the call behind
 *   sf_round_call_end: false       sf_round_call_is_left: true
 *   undoes the call
 *   sf_round_call_is_undone        sf_round_call_is_left: false
 */
void sf_round_call_begin(void);
/* False: the call was left behind. The caller undoes it, touches nothing of the agent's, and says that it has. */
bool sf_round_call_end(void);
void sf_round_call_is_undone(void);
/* Whether a call was left behind in this process, and is not undone. A forked child has none. */
bool sf_round_call_is_left(void);

/*
 * Starts the sampler. On return the threads have been scanned and their clocks are armed. The caller
 * has filled all other fields of *agent and sf_handler.
 */
bool sf_sampler_start(struct sf_agent *agent, struct sf_error *err);
/*
 * Ends the sampler: disarms the clocks, serves or cancels open slots and requests, and closes the accounts of all
 * threads. A call of a round that has not returned within half a second is left behind, with the sampler's thread.
 */
void sf_sampler_stop(struct sf_agent *agent);
/*
 * The sampler's thread ends, and another one goes on later with the same accounts. Meanwhile handlers are off and no clock is
 * armed; the CPU time belongs to each thread's next sample. After a failed return the sampler can only be destroyed.
 */
void sf_sampler_leave(struct sf_agent *agent);
bool sf_sampler_return(struct sf_agent *agent);
/* Frees a stopped sampler and sets agent->sampler to NULL. Does nothing when it is NULL already. */
void sf_sampler_destroy(struct sf_agent *agent);
/* CPU time of the sampler's thread, also after the stop. */
uint64_t sf_sampler_cpu_ns(const struct sf_agent *agent);

#endif
