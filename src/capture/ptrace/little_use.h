/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that use little CPU time. The ptrace engine looks at a thread once in a while, and has a sample where the look
 * finds it on a CPU. So of many threads that use less than the time between two looks, chance decides which have a sample
 * (base/use_shares.h).
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_LITTLE_USE_H
#define SF_CAPTURE_PTRACE_LITTLE_USE_H

#include "capture/ptrace/watch.h"

/* Before a look of a tick at now_ns. */
void sf_little_use_looked(struct sf_thread *thread, uint64_t now_ns);

/* Whether the thread has used so little that chance has a part in how many samples it has. */
bool sf_little_use_is(const struct sf_thread *thread);

/* The thread ends, and its account is settled: gives its CPU time, or takes some of that of others. */
void sf_little_use_end(const struct sf_watch *watch, struct sf_watched_process *process, struct sf_thread *thread, uint64_t now_ns);

/* The process ends: the loss of what was given and not taken. */
void sf_little_use_lose(struct sf_watch *watch, const struct sf_use_shares *shares);

#endif
