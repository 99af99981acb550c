/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread poll: the sampler's check of a thread at its own ticks, which does not disturb the
 * thread. The poll divides the thread's elapsed time. CPU time belongs to CPU samples. Run-queue delay
 * goes to the next CPU sample. The rest is sleep. The poll of a thread that did not run takes one
 * system call.
 */
#ifndef SF_AGENT_SAMPLER_THREAD_POLL_H
#define SF_AGENT_SAMPLER_THREAD_POLL_H

#include "agent/agent.h"
#include "agent/sampler/threads.h"

/*
 * Polls the thread. Samples a blocked thread, or extends its last sample. Counts lost CPU time of a
 * deaf thread, which blocks our signal. Only the sampler calls this.
 */
void sf_thread_poll(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns);

/* Records the CPU time of a deaf thread from its last sample up to cpu_ns as a loss. */
void sf_thread_poll_lose_deaf(struct sf_agent_thread *thread, uint64_t cpu_ns);

#endif
