/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's scheduling. A thread stands until the sampler gets its turn, so the sampler has to get it soon: before ordinary
 * threads, and before every other thread that has a lower real-time priority than the highest of the program's own.
 */
#ifndef SF_AGENT_SAMPLER_PRIORITY_H
#define SF_AGENT_SAMPLER_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

struct sf_priority {
	uint32_t own;        /* real-time priority of the sampler; 0: it is an ordinary thread */
	uint32_t highest;    /* of the threads that were seen in this round */
	uint32_t n_lower;    /* rounds since a thread with the sampler's priority was seen */
};

/* By the sampler's thread. It becomes an ordinary one that is preferred. */
void sf_priority_init(struct sf_priority *priority);
/* A thread of the program that has run in this round. */
void sf_priority_see(struct sf_priority *priority, int32_t tid);
/* The round is over: the sampler takes the highest priority at once, and leaves it when no thread has shown it for long. */
void sf_priority_settle(struct sf_priority *priority);

#endif
