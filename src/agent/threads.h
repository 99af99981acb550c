/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is watched: the threads of this process, found by looking through /proc/self/task, or registered
 * by themselves; each has a seat (frozen/seats.h) and, here, what only ordinary code needs.
 *
 * The sampler thread owns all of it, except sf_agent_thread_register and its like, which any
 * thread may call for itself and which only touch seats.
 */
#ifndef SF_AGENT_THREADS_H
#define SF_AGENT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/error.h"
#include "base/vec.h"
#include "frozen/seats.h"
#include "os/task.h"

struct sf_agent_thread {
	struct sf_seat *seat;
	int32_t  tid;
	uint32_t serial;
	char     name[64];
	bool     listed, watched, has_clock, sampled_asleep;
	uint64_t first_cpu_ns;       /* its clock when it came into sight */
	uint64_t cpu_ns;             /* its clock at the last look */
	uint64_t looked_ns;          /* when that was */
	uint64_t due_ns;             /* its next tick of the sampler's clock */
	uint64_t asleep_ns;          /* elapsed asleep, for its next sample asleep */
	uint64_t wait_ns;            /* by schedstat, at the last look */
	uint64_t n_samples_before;   /* of its seat, at the last look: a deaf thread's stands still */
	uint64_t asked_ns;           /* a request is under way since; 0: none */
	uint32_t asked_slot, asked_generation;
};

struct sf_agent_threads {
	const struct sf_agent_options *options;
	SF_VEC(struct sf_agent_thread) all;   /* by tid */
	struct sf_seat *seats;                /* SF_SEATS, by mmap */
	int32_t  own[3];                      /* never watched: sampler, keeper, listener; 0: none */
	uint64_t next_scan_ns, scan_cost_ns;
	uint64_t ended_cpu_ns;                /* of threads that were watched and have ended */
};

struct sf_agent_threads *sf_agent_threads_create(const struct sf_agent_options *options,
						 struct sf_error *err);
void sf_agent_threads_destroy(struct sf_agent_threads *threads);

/*
 * Looks for threads that came and went, if it is time (looking takes at most 1 % of a CPU, and a
 * first look happens at once): tells the outbox, arms and disarms clocks.
 */
void sf_agent_threads_scan(struct sf_agent_threads *threads, uint64_t now_ns);

/* Ends all: THREAD_END for each, and the CPU time that no thread's account holds as a loss (unseen). */
void sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns);

/* The CPU clock of any thread of this process, in one system call; false: it is gone. Signal-safe. */
bool sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret);

/* For the calling thread. */
bool sf_agent_thread_register(struct sf_error *err);
void sf_agent_thread_unregister(void);
bool sf_agent_thread_rename(const char *name, struct sf_error *err);
bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err);

/* The calling thread is about to exec: no request, no clock, no signal of ours is under way when it returns. */
void sf_agent_thread_before_exec(void);
void sf_agent_thread_after_exec(void); /* it failed */

#endif
