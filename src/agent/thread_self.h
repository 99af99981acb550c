/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads.c and the sampler need of the seats that threads fill in themselves
 * (thread_self.c).
 */
#ifndef SF_AGENT_THREAD_SELF_H
#define SF_AGENT_THREAD_SELF_H

#include <signal.h>
#include <stdbool.h>

#include "frozen/seats.h"

/*
 * For a new profile: nothing of the last one is in the seats, only what threads said of
 * themselves.
 */
void sf_agent_seats_renew(void);

/* seat->asked is 0 again; wakes the thread if it waits for that. Signal-safe. */
void sf_agent_seat_done(struct sf_seat *seat);

/* Whether somebody called sf_agent_threads_hurry since the last call of this. */
bool sf_agent_threads_hurried(void);

/* Whether this signal, which the calling thread took, came from our clocks or our sampler. */
bool sf_agent_thread_is_sent(const siginfo_t *info);

/* An exec is under way: no clock for the whole process is to be armed. */
bool sf_agent_exec_under_way(void);

#endif
