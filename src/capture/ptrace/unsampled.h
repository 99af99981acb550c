/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time that the kernel has counted for the processes that are watched, and that has no sample of its own. There are two
 * kinds:
 *
 * - Time that is in no thread's account: of threads and processes that came and went between two looks.
 * - Time of threads that use little. The ptrace engine looks at a thread once in a while, and has a sample where the look
 *   finds it on a CPU. So of many threads that use less than the time between two looks, chance decides which have a
 *   sample (base/use_shares.h).
 *
 * For the holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_UNSAMPLED_H
#define SF_CAPTURE_PTRACE_UNSAMPLED_H

#include "capture/ptrace/watch.h"

/* --- time that is in no account --- */

/* Ticks of this CPU time, at the rate of the recording. */
uint32_t sf_unseen_ticks(const struct sf_watch *watch, uint64_t cpu_ns);

/* The loss of a process that has ended, and of the descendants of the chosen processes when all of these have ended. */
void sf_unseen_lose(const struct sf_watch *watch, const struct sf_watched_process *process);
void sf_unseen_lose_children(const struct sf_watch *watch);

struct sf_unseen {
	uint64_t cpu_ns;       /* counted since the processes are watched */
	uint64_t unseen_ns;    /* of it in no account, at the least, or lost with a thread that has ended */
	/* Since the look before: */
	uint64_t switches;     /* times that threads were put on a CPU */
	uint64_t n_ran;        /* threads that were */
	/* Ever: */
	uint64_t unsampled_ns; /* CPU time of threads that live, have used little, and have no sample */
};

/* Reads the counts of all threads: some microseconds for each. `little_ns`: the most that is little. */
void sf_unseen_look(const struct sf_watch *watch, uint64_t little_ns, struct sf_unseen *ret);

/* --- threads that use little --- */

/* Whether the thread has used so little that chance has a part in how many samples it has. */
bool sf_little_use_is(const struct sf_thread *thread);

/* The thread ends, and its account is settled: gives its CPU time, or takes some of that of others. */
void sf_little_use_end(const struct sf_watch *watch, struct sf_watched_process *process, struct sf_thread *thread, uint64_t now_ns);

/* The process ends: the loss of what was given and not taken. */
void sf_little_use_lose(struct sf_watch *watch, const struct sf_use_shares *shares);

#endif
