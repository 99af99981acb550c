/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the threads that the sampler requests at one of its ticks, if threads have no CPU clock of
 * their own. Only the sampler calls these functions.
 */
#ifndef SF_AGENT_SAMPLER_SELECT_THREADS_H
#define SF_AGENT_SAMPLER_SELECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/sampler/threads.h"

#define SF_MAX_SELECTED 256   /* in one tick */

/*
 * Of the threads that are due for a sample (ticks are a period apart), any as many as the options
 * say, each with the same chance. Their places in agent->threads->all; how many.
 */
uint32_t sf_select_threads(struct sf_agent *agent, uint64_t period_ns, uint64_t *random,
		   uint32_t chosen_ret[SF_MAX_SELECTED]);

/*
 * Whether the thread is awake. A thread that ran and sleeps by now gets no signal; the next poll takes
 * a blocked sample of it.
 */
bool sf_is_awake(const struct sf_agent_thread *thread);

#endif
