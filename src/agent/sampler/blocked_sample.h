/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked samples: samples of a thread that sleeps in a system call, without a signal. pc and sp come
 * from /proc/self/task/TID/syscall. The stack is read through the kernel and walked by unwind rows.
 * The thread's CPU clock proves that it slept throughout.
 */
#ifndef SF_AGENT_SAMPLER_BLOCKED_SAMPLE_H
#define SF_AGENT_SAMPLER_BLOCKED_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct sf_agent;
struct sf_agent_options;
struct sf_agent_thread;

/*
 * Samples a blocked thread; the sample accounts for thread->asleep_ns. thread->cpu_ns must have been
 * read before, as a part of the proof. Only the sampler calls this. False: the thread was awake, or
 * woke up meanwhile.
 */
bool sf_blocked_sample_take(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns);

/*
 * Whether a new sample of the same sleep may be complete: the walk of the last one was cut, and since
 * then code was mapped, a runtime was attached, or the thread got a handle.
 */
bool sf_blocked_sample_is_out_of_date(const struct sf_agent_thread *thread);

/*
 * The thread still sleeps: its last sample accounts for thread->asleep_ns, too. `again` writes the
 * AGAIN record at once; `on` writes it at intervals.
 */
void sf_blocked_sample_again(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		     uint64_t now_ns);
void sf_blocked_sample_on(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		  uint64_t now_ns);

/*
 * What these samples may cost inside the program: 1 % of the CPUs that it may use. A thread that sleeps on
 * is sampled once, but each new sleep of a thread that naps has a walk of its own. Where walking all of these would cost
 * more, some are passed over, chosen at random. The elapsed time of a sleep that is passed over goes to the thread's next
 * sample asleep. Everything here may be called while a thread is held.
 */
struct sf_sleep_budget {
	unsigned n_cpus;
	uint64_t random;
	uint64_t part;              /* of 1 << 16, that is sampled */
	uint64_t began_ns;          /* the present round of looks: */
	uint64_t n_due;             /* samples that were due in it, ... */
	uint64_t n_taken, taken_ns; /* and those that were taken, and their cost */
	uint64_t mean_ns;           /* the cost of one, in the last round that had any */
};

/* n_cpus: that the program may use. */
void sf_sleep_budget_begin(struct sf_sleep_budget *budget, unsigned n_cpus, uint64_t now_ns);

/* A round of looks at all threads begins: what the last one has found decides which part of the samples is taken in this one. */
void sf_sleep_budget_round(struct sf_sleep_budget *budget, uint64_t now_ns);

/* A sample is due. False: it is passed over, unless it is the `first` of its thread. */
bool sf_sleep_budget_has_room(struct sf_sleep_budget *budget, bool first);

void sf_sleep_budget_taken(struct sf_sleep_budget *budget, uint64_t cost_ns);

#endif
