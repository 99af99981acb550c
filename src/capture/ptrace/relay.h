/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries every call of a sink from the holding thread to the walking thread, as a record in a ring. Writing a still never
 * waits. Writing any other record may wait, while nothing is held: so no begin or end of a thread is lost.
 */
#ifndef SF_CAPTURE_PTRACE_RELAY_H
#define SF_CAPTURE_PTRACE_RELAY_H

#include "capture/sink.h"
#include "capture/ptrace/stack_copy.h"
#include "capture/ptrace/thread.h"

struct sf_relay;

/* Starts the walking thread, which calls `sink`. */
bool sf_relay_open(const struct sf_sink *sink, struct sf_relay **ret, struct sf_error *err);

/*
 * Sets the function that the holding thread calls again and again while the ring has no room. Threads whose hold was
 * requested may stand by then. `fn` writes nothing into the relay.
 */
void sf_relay_on_wait(struct sf_relay *relay, void (*fn)(void *arg), void *arg);

/* The engine measures no time: rests and losses of time are left out, and the CPU time that the kernel counted. */
void sf_relay_leave_out_times(struct sf_relay *relay);

/* Waits until all records have reached the sink. False if the sink failed, with its error. */
bool sf_relay_close(struct sf_relay *relay, struct sf_error *err);

/* The sink has failed: there is no use in going on. */
bool sf_relay_failed(const struct sf_relay *relay);

/* The holding thread's side. Threads belong to the relay once sf_relay_thread_end was called. */
void sf_relay_process(struct sf_relay *relay, int32_t pid, int32_t parent);
/* The process, of which the relay was told, begins here. */
void sf_relay_process_forked(struct sf_relay *relay, int32_t pid, int32_t parent);
/* The process has ended, and no record of it follows. */
void sf_relay_process_end(struct sf_relay *relay, int32_t pid);
/* The name of a process of which /proc knows none any more; and code that a process has mapped. */
void sf_relay_process_name(struct sf_relay *relay, int32_t pid, int32_t parent, const char *name);
void sf_relay_mapping(struct sf_relay *relay, int32_t pid, const struct sf_mapping *mapping);
void sf_relay_thread(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns);
/* `cause`: why there is no further sample, for the time of one whose copy was cut. */
void sf_relay_thread_end(struct sf_relay *relay, struct sf_thread *thread, uint64_t time_ns, enum sf_loss cause);
void sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns,
		    const struct sf_weight *weight);
void sf_relay_woken(struct sf_relay *relay, const struct sf_thread *thread, int32_t waker, const char *waker_name);
void sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
		   const struct sf_weight *weight);

/*
 * Room for a still with `room` bytes of stacks, or NULL when the ring is full; then either sent,
 * or dropped. Signal-safe, and may be called while a thread is held.
 */
struct sf_stack_copy *sf_relay_reserve(struct sf_relay *relay, uint32_t room);
/* The same, and waits for room. For an engine that holds no thread meanwhile. */
struct sf_stack_copy *sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t room);
void sf_relay_drop(struct sf_relay *relay);
void sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight,
		   uint64_t hold_ns);

/*
 * Bytes that the longest copy had room for, of those that are the only ones of their sleep or event, and were too short
 * to be walked. 0: there is none.
 */
uint32_t sf_relay_only_cut(const struct sf_relay *relay);

/*
 * How long walking and recording a still usually takes; 0: there was none. What takes far longer than others has read files, which
 * happens once, and counts little.
 */
uint64_t sf_relay_usual_walk_ns(const struct sf_relay *relay);

/*
 * The holding thread rests until `until_ns`: there will hardly be a record to walk before. A record that is written all
 * the same is walked a little later.
 */
void sf_relay_rest(struct sf_relay *relay, uint64_t until_ns);

#endif
