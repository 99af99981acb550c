/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The count of an event (--event) whose occurrences the program's own threads report, and the choice of those that are
 * sampled:
 *
 *   amounts of samples + lost amounts = counted
 *
 * Each occurrence has an amount: 1, or bytes. An occurrence is sampled when the count of the process reaches the next due
 * amount. Its sample stands for the amounts of its thread since that thread's last sample. So a thread's share of the
 * samples is its share of the amounts, and no thread has to reach a number of its own first.
 *
 * The distance between two due amounts is fixed, or drawn at random around a mean, so that no program falls into step
 * with it. The mean follows the samples: it grows when there are more than the budget of a tenth of a second, and shrinks
 * when there are few.
 */
#ifndef SF_FROZEN_SIGNAL_EVENT_H
#define SF_FROZEN_SIGNAL_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sf_handler;
struct sf_handler_output;
struct sf_thread_entry;

#define SF_EVENT_WINDOW_NS UINT64_C(100000000)

struct sf_event_meter {
	_Atomic bool     on;
	_Atomic uint32_t n_inside;      /* threads between sf_event_begin and sf_event_end */
	_Atomic uint64_t counted;
	_Atomic uint64_t homeless;      /* the part of it that is of threads without an entry */
	_Atomic uint64_t due;           /* of `counted` */
	_Atomic uint64_t each;          /* between two due amounts */
	bool     fixed;                 /* `each` is the user's */
	uint32_t budget;                /* samples in a window */
	_Atomic uint64_t window_ns;     /* when the present one began */
	_Atomic uint32_t n_in_window;
	_Atomic uint64_t random;
};

/* A new count, switched off. `each` 0: the mean follows the samples, of which there are `per_second` at most. */
void sf_event_meter_init(struct sf_event_meter *meter, uint64_t each, uint64_t per_second, uint64_t now_ns);

/*
 * Around an occurrence, by its thread. False: the count is off, and sf_event_end is not called. After the switch is set
 * to off, and once no thread is inside, the count does not change. Signal-safe.
 */
bool sf_event_begin(struct sf_event_meter *meter);
void sf_event_end(struct sf_event_meter *meter);

/* Counts an occurrence. True: it is to be sampled. Signal-safe. */
bool sf_event_count(struct sf_event_meter *meter, uint64_t amount);

/* A sample was taken, of this amount: the mean follows. Signal-safe. */
void sf_event_pace(struct sf_event_meter *meter, uint64_t amount, uint64_t now_ns);

/*
 * --- a sample of an event, taken by the thread on which the event has happened ---
 *
 * The thread walks itself in a slot's workspace, as in a signal handler with the walk in the handler. Events are sampled in
 * place of time, so no handler of ours samples meanwhile. Signal-safe.
 */

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
void sf_event_lose(struct sf_handler_output *output, struct sf_thread_entry *entry);

#endif
