/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: the sampler signals threads that have no clock of their own, which then wait in a slot or
 * walk themselves. Several requests are open at once, one for each slot. A request ends with the answer
 * or with its time-out.
 */
#ifndef SF_AGENT_SAMPLER_REQUESTS_H
#define SF_AGENT_SAMPLER_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/threads.h"
#include "base/error.h"

struct sf_agent;

struct sf_request {
	struct sf_agent_thread thread;  /* as it was: its entry, ids and clock count */
	uint32_t generation;
	uint64_t sent_ns;               /* 0: no request is open for this slot */
};

struct sf_requests {
	struct sf_request *of;          /* by slot, sf_handler.link.n_slots of them */
	uint32_t n;                     /* open requests */
	uint32_t next_slot;             /* at which the search for a free slot begins */
};

bool sf_requests_init(struct sf_requests *requests, struct sf_error *err);
void sf_requests_deinit(struct sf_requests *requests);

/*
 * Requests a thread that has no open request; the sampler woke at woke_ns. False: every slot is in use.
 */
bool sf_requests_send(struct sf_requests *requests, const struct sf_agent_thread *thread,
		     uint64_t woke_ns);

/*
 * At a tick, where threads have no CPU clock of their own: requests threads that are due for a sample and awake, as many as the
 * options say. Ticks are period_ns apart.
 */
void sf_requests_send_due(struct sf_requests *requests, struct sf_agent *agent, uint64_t period_ns, uint64_t *random,
			  uint64_t woke_ns);

/*
 * Decides for threads that wait for their weight (weight.h), and ends answered requests. A request that
 * was not answered in time is cancelled, and becomes a loss.
 */
void sf_requests_settle(struct sf_requests *requests, uint64_t now_ns);

#endif
