/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What samples of sleeping threads may cost inside the program: 1 % of the CPUs that it may use. A thread that sleeps on
 * is sampled once, but each new sleep of a thread that naps has a walk of its own. Where walking all of these would cost
 * more, some are passed over, chosen at random. The elapsed time of a sleep that is passed over goes to the thread's next
 * sample asleep.
 *
 * Owned by the sampler's thread. Everything here may be called while a thread is held.
 */
#ifndef SF_AGENT_SAMPLER_SLEEP_BUDGET_H
#define SF_AGENT_SAMPLER_SLEEP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

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
