/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec preparation: removes a thread's clock, request and pending signals of ours before the thread
 * executes another program. A signal of ours after the exec would end the new program.
 */
#ifndef SF_AGENT_THREADS_EXEC_PREPARATION_H
#define SF_AGENT_THREADS_EXEC_PREPARATION_H

#include <signal.h>
#include <stdbool.h>

/*
 * Called by a thread that is about to exec. On return the thread has no request, no clock and no
 * pending signal of ours. False: nothing was done, because this process is not sampled. A child of
 * vfork() is not sampled either, although it runs in the memory of its parent.
 */
bool sf_agent_thread_before_exec(void);
void sf_agent_thread_after_exec(void); /* after a failed exec; only if the call above returned true */

/* Whether an exec is in progress: then no clock of the whole process may be armed. */
bool sf_agent_exec_under_way(void);
/* In a forked child: no exec is in progress. */
void sf_exec_preparation_forked(void);

/* Whether this signal, which the calling thread took, came from one of our clocks or from the sampler. */
bool sf_agent_thread_is_sent(const siginfo_t *info);
/*
 * Takes those that are pending for the calling thread, which blocks them. True: no other signal of their number is pending for it.
 * One that is pending for the process is the program's, except with cpu-clock=itimer: all stay then.
 */
bool sf_agent_thread_drop_sent(void);

#endif
