/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that leaves for another program: signals of ours that come after its exec would end
 * that program, so they are taken off before.
 */
#ifndef SF_AGENT_LEAVING_H
#define SF_AGENT_LEAVING_H

#include <signal.h>
#include <stdbool.h>

/*
 * The calling thread is about to exec: no request, no clock, no signal of ours is under way when
 * it returns. False: nothing was done, as this process is not sampled. A child of vfork() is not
 * either, though it runs in the memory of one that is.
 */
bool sf_agent_thread_before_exec(void);
void sf_agent_thread_after_exec(void); /* it failed; only after a true */

/* An exec is under way: no clock for the whole process is to be armed. */
bool sf_agent_exec_under_way(void);
/* In a forked child none is. */
void sf_agent_leaving_forked(void);

/* Whether this signal, which the calling thread took, came from our clocks or our sampler. */
bool sf_agent_thread_is_sent(const siginfo_t *info);

#endif
