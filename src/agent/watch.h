/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that came into sight (threads.h): whether it is watched, what the outbox knows of it,
 * its clock, its name. For threads.c and scan.c, all in the sampler's thread.
 */
#ifndef SF_AGENT_WATCH_H
#define SF_AGENT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/threads.h"

/* Begins, goes on with or ends the watch, as the options and the thread's name and flags want it. */
void sf_watch_settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		     uint64_t now_ns);

/* Clock off, last sample asleep extended, CPU time of no sample lost, THREAD_END. Nothing if unwatched. */
void sf_watch_end(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		  uint64_t now_ns);

/* A clock of its own, if that is the kind and the thread is not about to exec. */
void sf_watch_arm(struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* The clock for those that run between the kernel's ticks, in the place of the one that it has. */
void sf_watch_arm_between(struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* Tells the outbox its name; thread->told says whether there was room. */
void sf_watch_tell_name(struct sf_agent_thread *thread, uint64_t now_ns);

/* Reads its name, and whether that is one of threads=. True when it is another than before. */
bool sf_watch_read_name(const struct sf_agent_threads *threads, struct sf_agent_thread *thread);

/* Whether it is time to read it again. */
bool sf_watch_name_is_due(const struct sf_agent_threads *threads,
			  const struct sf_agent_thread *thread);

/* The ticks that were due in so much CPU time: none where it was short. */
uint32_t sf_watch_ticks(const struct sf_agent_threads *threads, uint64_t cpu_ns);

#endif
