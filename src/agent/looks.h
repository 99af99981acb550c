/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler learns of a thread at its own ticks without touching it, and the accounts of
 * its wall time: what its clock says is CPU time and belongs to CPU samples; what it waited for a
 * CPU goes to the next of those; the rest was sleep. One system call for a thread that did not
 * run.
 */
#ifndef SF_AGENT_LOOKS_H
#define SF_AGENT_LOOKS_H

#include "agent/agent.h"
#include "agent/threads.h"

/*
 * Samples or extends it if it sleeps; counts what is lost when it is deaf. Only the sampler calls
 * it.
 */
void sf_look(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns);

/* What it used since its last sample, up to cpu_ns, is lost: it blocks our signal. */
void sf_look_lose_deaf(struct sf_agent_thread *thread, uint64_t cpu_ns);

#endif
