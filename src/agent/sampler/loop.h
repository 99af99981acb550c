/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's loop (sampler.h): one turn serves the threads that are held, settles requests, scans, polls, ticks, and
 * sleeps until the next wake-up or time.
 *
 * All functions but init and deinit run on the sampler's thread.
 */
#ifndef SF_AGENT_SAMPLER_LOOP_H
#define SF_AGENT_SAMPLER_LOOP_H

#include "agent/agent.h"
#include "agent/sampler/requests.h"
#include "agent/sampler/scheduling.h"

struct sf_sampler_loop {
	struct sf_agent *agent;
	struct sf_requests requests;
	struct sf_cpu_affinity affinity;
	struct sf_priority priority;
	bool     paused;
	bool     is_left;            /* a call of a round was left behind */
	uint64_t random;
	uint64_t look_period_ns, tick_period_ns; /* 0: none */
	uint64_t next_look_ns, next_tick_ns;
	uint64_t woke_ns;            /* who was displaced by that waits no longer than since then */
	uint32_t looked;             /* threads of the present round of looks; n: it is over */
};

/* `loop` is zero. deinit may be called after a failure, too. */
bool sf_sampler_loop_init(struct sf_sampler_loop *loop, struct sf_agent *agent, struct sf_error *err);
void sf_sampler_loop_deinit(struct sf_sampler_loop *loop);

/* At the start of a thread for the loop, whose id is `tid`: scans the threads and arms their clocks. */
void sf_sampler_loop_begin(struct sf_sampler_loop *loop, int32_t tid);
/* False: a call of a round was left behind (sampler.h), and the thread ends without a further call but deinit. */
bool sf_sampler_loop_turn(struct sf_sampler_loop *loop);
/* Serves or cancels what is under way, and closes the accounts. `leaves`: they stay open for the next thread. */
void sf_sampler_loop_end(struct sf_sampler_loop *loop, bool leaves);

#endif
