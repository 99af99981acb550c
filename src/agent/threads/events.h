/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile of an event (--event): the count of it, and its samples, by the threads on which it happens. A part for a
 * runtime (agent/runtimes.h) calls sf_agent_event for each occurrence, and says what it was when a sample is due.
 *
 * The agent's thread table has the amount that each thread has no sample for yet. The profile's end makes losses of it.
 */
#ifndef SF_AGENT_THREADS_EVENTS_H
#define SF_AGENT_THREADS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/event.h"

#define SF_AGENT_EVENT_NUMBER 24

/* The labels of an occurrence: filled when a sample is due. Keys are zero-terminated; NULL: no such label. */
struct sf_agent_event_label {
	const char *key;
	char     value[SF_EVENT_TEXT];
	uint16_t value_size;
	const char *second_key;
	char     second_value[SF_AGENT_EVENT_NUMBER]; /* zero-terminated */
};

/* Fills *ret; called at once, on the same thread. It takes no lock and allocates nothing. */
typedef void sf_agent_describe_fn(const void *arg, struct sf_agent_event_label *ret);

/*
 * An event has happened on the calling thread. Any thread of the program, not in a signal handler; takes no lock,
 * allocates nothing.
 */
void sf_agent_event(uint64_t amount, sf_agent_describe_fn *describe, const void *arg);

/*
 * For agent.c. Begin: `each` and `per_second` as for sf_event_meter_init; threads count from now on. Stop: no thread counts
 * when this returns. End: writes the losses of threads that the sampler does not watch, and the measure with its count.
 */
void sf_agent_events_write(const char *name, const char *unit, bool is_over);
void sf_agent_events_begin(uint64_t each, uint64_t per_second);
void sf_agent_events_switch(bool on);
void sf_agent_events_end(const char *name, const char *unit);

#endif
