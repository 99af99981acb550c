/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample of an event (event_meter.h), taken by the thread on which the event has happened: the thread walks itself in a
 * slot's workspace, as in a signal handler with the walk in the handler. Events are sampled in place of time, so no
 * handler of ours samples meanwhile. Signal-safe.
 */
#ifndef SF_FROZEN_SIGNAL_EVENT_SAMPLE_H
#define SF_FROZEN_SIGNAL_EVENT_SAMPLE_H

#include "frozen/signal/state.h"

/* An occurrence of the event. Texts are not zero-terminated. */
struct sf_event {
	struct sf_thread_entry *entry;   /* of the calling thread, which has a serial */
	const void *ucontext;            /* of the calling thread, from getcontext() in stillframe's own code */
	const char *key, *value;         /* the label, at most SF_EVENT_TEXT bytes each; key_size 0: none */
	uint16_t key_size, value_size;
	const char *second_key, *second_value; /* a second one, too; second_key_size 0: there is none */
	uint16_t second_value_size;
	uint8_t  second_key_size;
};

#define SF_EVENT_TEXT 1024

/*
 * Takes the entry's amount, walks, and puts the sample into the outbox. Stillframe's own frames are left out, and where
 * there is a managed function, the frames of native code that it has called: they are the runtime's way to report the
 * event. Without a free slot, or without room in the outbox, the amount stays with the entry, for the thread's next
 * sample.
 */
void sf_event_sample(struct sf_handler *handler, const struct sf_event *event);

/* Writes the entry's amount as a loss. */
void sf_event_lose(struct sf_handler_output *output, struct sf_thread_entry *entry, enum sf_loss cause);

#endif
