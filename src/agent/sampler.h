/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thread that holds others. It sleeps on the bell; when threads stand in slots it walks
 * each and lets it go; at its own ticks it looks at the threads: those that did not run are
 * extended, those that sleep are read where they sleep (asleep.h), those that run and have no
 * clock of their own are asked for, several at once (--per-tick), each request with its time-out.
 *
 * It blocks all signals, allocates nothing between sf_slot_take and sf_slot_release, and takes no
 * lock that a thread of the target may own (a held thread may own any).
 */
#ifndef SF_AGENT_SAMPLER_H
#define SF_AGENT_SAMPLER_H

#include "agent/agent.h"

/*
 * Has looked for threads and armed their clocks when it returns. All else of *agent and sf_inside
 * is filled.
 */
bool sf_sampler_start(struct sf_agent *agent, struct sf_error *err);
/*
 * Ends it: takes the clocks off, serves or cancels what is under way, ends all threads' accounts.
 */
void sf_sampler_stop(struct sf_agent *agent);
/* After the stop; agent->sampler is NULL then. Nothing happens when it is so already. */
void sf_sampler_destroy(struct sf_agent *agent);
/* CPU time of its thread, also after the stop. */
uint64_t sf_sampler_cpu_ns(const struct sf_sampler *sampler);

#endif
