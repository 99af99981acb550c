/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that the sampler asks to stand, or to walk themselves, for want of a clock of their own.
 * Several are under way at once, one to a slot, each until it was answered or its time is over.
 */
#ifndef SF_AGENT_SAMPLER_REQUESTS_H
#define SF_AGENT_SAMPLER_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/threads.h"
#include "base/error.h"

struct sf_request {
	struct sf_agent_thread thread;  /* as it was: its entry, ids and clock count */
	uint32_t generation;
	uint64_t asked_ns;              /* 0: none is under way in this slot */
};

struct sf_requests {
	struct sf_request *of;          /* by slot, sf_handler.n_slots of them */
	uint32_t n;                     /* under way */
	uint32_t next_slot;             /* where to look first */
};

bool sf_requests_init(struct sf_requests *requests, struct sf_error *err);
void sf_requests_deinit(struct sf_requests *requests);

/*
 * Asks a thread that is not asked already; the sampler woke at woke_ns. False when every slot is
 * taken.
 */
bool sf_requests_ask(struct sf_requests *requests, const struct sf_agent_thread *thread,
		     uint64_t woke_ns);

/*
 * Tells those that walk themselves how to weigh, and notes which were answered; one that was not in
 * time is cancelled, and counted as a loss.
 */
void sf_requests_settle(struct sf_requests *requests, uint64_t now_ns);

#endif
