/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch of one thread of the list (threads.h): whether the thread is watched, its records in the
 * outbox, its clock, and its name. Only the sampler's thread calls these functions.
 */
#ifndef SF_AGENT_SAMPLER_THREAD_WATCH_H
#define SF_AGENT_SAMPLER_THREAD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/threads.h"

/* Begins, continues or ends the watch, by the options and by the thread's name and flags. */
void sf_watch_settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		     uint64_t now_ns);

/*
 * Ends the watch: disarms the clock, extends the last blocked sample, and writes THREAD_END. CPU time
 * without a sample is added to the thread's last sample, given to samples of other threads that use little
 * (base/use_shares.h), or lost. Does nothing if the thread is not watched.
 */
void sf_thread_watch_end(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		  uint64_t now_ns);

/* All watches have ended: the loss of CPU time that was to be given to other samples, and was not. */
void sf_thread_watch_lose_rest(struct sf_agent_threads *threads);

/* Arms the thread's own clock anew, if the kind is per thread and the thread is not about to exec. */
void sf_watch_arm(struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* Replaces the thread's clock by the one for threads that run between the kernel's ticks. */
void sf_watch_arm_between(struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* Writes the thread's THREAD record; sets thread->is_written if the outbox had room. */
void sf_watch_write_name(struct sf_agent_thread *thread, uint64_t now_ns);

/* Reads the thread's name and matches it with threads=. True: the name has changed. */
bool sf_watch_read_name(const struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* Whether it is time to read the name again. */
bool sf_watch_name_is_due(const struct sf_agent_threads *threads,
			  const struct sf_agent_thread *thread);

#endif
