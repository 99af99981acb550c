/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API call guard: marks a thread of the program that is inside a call of stillframe's API. Such a
 * call starts, stops, pauses or resumes a profile, and waits for the agent. Its elapsed time does not
 * belong to the program: ticks of the thread are dropped, the sampler does not poll the thread, and
 * the length of the call is in no sample. CPU time of the call stays on the thread's account, for its
 * next sample or for the loss at its end. The call disables cancellation (pthread_setcancelstate(3)): it may hold locks, and it
 * contains cancellation points, as it waits for threads that end, where the program's own call is no cancellation point.
 */
#ifndef SF_AGENT_THREADS_API_GUARD_H
#define SF_AGENT_THREADS_API_GUARD_H

#include <stdint.h>

#include "frozen/signal/thread_table.h"

/*
 * Called by the thread at the beginning and the end of an API call. Without room for the thread's entry
 * its time is not excluded. Guards do not nest.
 */
void sf_api_guard_begin(void);
void sf_api_guard_end(void);

/* For the sampler: when the present API call began; 0: the thread is in none. Signal-safe. */
uint64_t sf_api_guard_since(const struct sf_thread_entry *entry);

/*
 * For the sampler. `take`: the total length of the API calls that ended since the last `take`.
 * `restart`: the accounts begin at now_ns, and the time before it is not counted.
 */
uint64_t sf_api_guard_take(struct sf_thread_entry *entry);
void sf_api_guard_restart(struct sf_thread_entry *entry, uint64_t now_ns);

#endif
