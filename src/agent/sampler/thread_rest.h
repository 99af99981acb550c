/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time of a thread for which no sample stands when its watch ends: it is added to the thread's last sample, given to
 * samples of other threads that use little (base/use_shares.h), or lost. Only the sampler's thread calls this.
 */
#ifndef SF_AGENT_SAMPLER_THREAD_REST_H
#define SF_AGENT_SAMPLER_THREAD_REST_H

#include "agent/sampler/threads.h"

/* The thread's watch ends, with this cause of what is lost. thread->cpu_ns is the last that is known of its clock. */
void sf_thread_rest_settle(struct sf_agent_threads *threads, const struct sf_agent_thread *thread, enum sf_loss cause, uint64_t now_ns);

/* All watches have ended: the loss of what was given to other samples, and not taken. */
void sf_thread_rest_lose(struct sf_agent_threads *threads);

#endif
