/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread in a recording, and what is kept of it from one sample to the next: its number and name there, its last sample,
 * its ticks that are not written yet, and the outer part of its stack. While the thread continues to sleep, its ticks are
 * added up, and written as one sample that stands for all of them.
 *
 * A zeroed struct is a new thread. Functions that return a bool fail only if the recording fails.
 */
#ifndef SF_SESSION_RECORDED_THREAD_H
#define SF_SESSION_RECORDED_THREAD_H

#include "capture/sink.h"
#include "frozen/trace.h"
#include "frozen/unwind/tail.h"
#include "recording/recording.h"
#include "session/walker.h"

/*
 * The outer part of a thread's stack is mostly that of its last sample. How many frames that are, and what the
 * recording calls the stack up to each of them, so that they need not be looked up again.
 */
struct sf_stack_suffix {
	struct sf_frame *frames;  /* of the last complete stack, outermost first; from malloc, as below */
	uint32_t *stacks;         /* beside them: the number in the recording, up to and with that frame */
	uint32_t n, capacity;
	uint32_t n_same;          /* of the last sf_stack_suffix_match */
};

void sf_stack_suffix_deinit(struct sf_stack_suffix *suffix);

/*
 * Counts the outermost frames of a trace that equal those of the last trace. The same number of elements
 * of `stacks` is valid afterwards; the caller fills in the others, for which there is room. The given trace
 * then replaces the last one; a trace that did not end at the root counts as empty. False: no memory.
 */
bool sf_stack_suffix_match(struct sf_stack_suffix *suffix, const struct sf_trace *trace);

/*
 * The memory of the tails of threads (frozen/unwind/tail.h), in bytes. It grows with what their walks could not keep, within
 * a bound for each thread and one for all. Zero at the begin.
 */
struct sf_tail_room {
	uint64_t used;
};

/* After a walk: gives the tail the room that it lacked; then it is empty. Where there is no memory it stays as it is. */
void sf_tail_room_fit(struct sf_tail_room *room, struct sf_tail *tail);

/* Gives the memory of a tail back. It is zero then. */
void sf_tail_room_free(struct sf_tail_room *room, struct sf_tail *tail);

struct sf_recorded_thread {
	uint32_t serial;                    /* the engine's */
	uint32_t number;                    /* in the recording; 0: ended */
	struct sf_recording_sample last;    /* its last sample; ticks 0: nothing waits to be
					     * written */
	bool has_last;
	bool is_open;                       /* `last` is a sleep whose end is not recorded yet ... */
	uint64_t opened_ns;                 /* ... and that came at this time */
	uint64_t futex;                     /* its lock or condition, if it is in futex(2); else 0 */
	struct sf_recording_sample ran;     /* its last sample on a CPU; thread 0: none */
	struct sf_recording_row ran_row;    /* where its last one with CPU time is, if that has the time since the one before */
	struct sf_recording_sample slept;   /* its last sample in a recorded sleep; thread 0: none */
	int32_t pid, tid;
	bool named_later;                      /* it could not be read yet (runtime.h) */
	bool runtime_named;                    /* a runtime's name for it is in the
					     * recording */
	uint64_t named_ns;                  /* when that was last read */
	struct sf_stack_suffix suffix;   /* of this program that its process ran */
	uint32_t program;
	struct sf_tail tail;                /* of its last walk */
};

void sf_recorded_thread_deinit(struct sf_recorded_thread *thread);

/* `sample` was written: ticks that come now stand where it did. Nothing may wait. */
void sf_recorded_thread_sampled(struct sf_recorded_thread *thread,
			    const struct sf_recording_sample *sample);

/* `sample` is a sleep whose end is to come: it waits to be written. Nothing else may wait. */
void sf_recorded_thread_open(struct sf_recorded_thread *thread, const struct sf_recording_sample *sample);

/* Adds a tick at which the thread was where its last sample was. */
void sf_recorded_thread_wait(struct sf_recorded_thread *thread, uint64_t time_ns,
			 const struct sf_weight *weight);

/* Writes the ticks that wait. */
bool sf_recorded_thread_flush(struct sf_recorded_thread *thread, struct sf_recording *recording,
			  struct sf_error *err);

/* The name that a runtime has for it, where there is one; read once a second. */
bool sf_recorded_thread_name(struct sf_recorded_thread *thread, struct sf_walker *walker,
			 struct sf_recording *recording, uint64_t now_ns, struct sf_error *err);

#endif
