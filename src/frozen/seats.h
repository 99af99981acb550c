/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread table: one entry, a seat, for each watched thread of this process. A seat holds what a
 * signal handler needs about the thread that it interrupted. The table has a fixed size. An entry
 * is found by its thread id without a lock, in handlers too.
 *
 * The sampler claims a seat for a thread that it found, or a thread claims its own seat. The seat
 * is given up after the thread has ended. The accounts follow capture/thread.h: the CPU
 * time that no sample or loss accounts for yet is the thread's CPU clock minus `spoken_ns`.
 */
#ifndef SF_FROZEN_SEATS_H
#define SF_FROZEN_SEATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/runtime.h"

#define SF_SEATS 16384          /* a power of two */
#define SF_NO_SEAT UINT32_MAX
#define SF_SEAT_NO_HANDLE 1     /* in handles: the thread has none in this runtime */

enum sf_seat_flags {
	SF_SEAT_REGISTERED = 1,   /* by the thread itself */
	SF_SEAT_LEAVING = 2,      /* the thread is about to exec or to exit: no more requests to it */
	SF_SEAT_UNWATCHED = 4,    /* the options exclude the thread */
	SF_SEAT_DEAF = 8,         /* the thread blocks our signal */
	SF_SEAT_PERF = 16,        /* `clock` is a perf descriptor, else a timer */
	SF_SEAT_NAMED = 32,       /* the thread gave itself a name */
	SF_SEAT_RENAMED = 64,     /* ... which the sampler has not written to the stream yet */
	SF_SEAT_LEFT_RUNTIME = 128, /* the thread has left a runtime: its handles may be out of date */
};

struct sf_seat {
	_Atomic int32_t  tid;          /* above 0: in use by that thread; else in use by none (seats.c) */
	_Atomic uint32_t flags;
	_Atomic uint32_t serial;       /* in the stream, from 1; never used again */
	_Atomic uint32_t label;        /* number, 0: none */
	_Atomic uint64_t spoken_ns;    /* thread CPU time that samples and losses account for */
	_Atomic uint64_t waited_ns;    /* run-queue delay, for the next sample's wall time */
	_Atomic uint64_t period_ns;    /* of its clock now: longer than the option's period while
					* the clock backs off */
	_Atomic uint64_t set_ns;       /* ... as the sampler set it last, where it does that
					* (clocks_apart) */
	_Atomic uint64_t n_samples;
	_Atomic uint32_t asked;        /* a request is under way: slot number + 1 */
	_Atomic uint64_t asked_ns;     /* ... by a sampler that woke at this CLOCK_MONOTONIC time */
	_Atomic uint64_t asked_wait_ns; /* ... and the thread's total run-queue delay at that time */
	_Atomic uint64_t judge_ns;     /* when the thread answered and asked the sampler for its CPU
					* weight (weight.h); 0: no question is open */
	_Atomic uint32_t judged;       /* ... the sampler's answer */
	_Atomic int32_t  clock;        /* perf descriptor or timer id, -1: none */
	_Atomic int32_t  rings_as;     /* si_fd of its perf clock, kept after the descriptor is closed:
					* a signal of ours may still be pending. 0: no perf clock yet */
	_Atomic uint64_t clock_id;     /* of a perf descriptor (PERF_EVENT_IOC_ID), to detect that the
					* program has reused the number */
	_Atomic uint64_t visit_since_ns; /* since when the thread is in a call of our API, where it is
					  * not sampled; 0: it is not in one */
	_Atomic uint64_t visited_ns;   /* total length of such calls, which the sampler subtracts
					* from the thread's wall time */
	_Atomic uint64_t handles[SF_MAX_RUNTIMES]; /* of the thread in each runtime; may be out of
					* date; SF_SEAT_NO_HANDLE; 0: not looked up yet */
	uint64_t random;               /* for jitter; owned by the signal handler */
	int64_t  over_ns;              /* CPU time beyond the ticks of its samples; owned by the handler,
					* or by the holder of the thread */
};

/* `seats`: the caller's memory for SF_SEATS seats, zeroed. All signal-safe, any thread. */
struct sf_seat *sf_seats_find(struct sf_seat *seats, int32_t tid);   /* NULL: no seat */
/* The thread's seat, a new one if need be (then *new_ret, and it must be filled); NULL: no room. */
struct sf_seat *sf_seats_claim(struct sf_seat *seats, int32_t tid, bool *new_ret);
void sf_seats_leave(struct sf_seat *seat);   /* the thread has ended */

/*
 * The weight of a sample or loss of this thread: the CPU time since the last one, and the number of
 * ticks in that time (at least 1, of seat->period_ns). Two callers that race share the time.
 * Signal-safe.
 */
uint64_t sf_seat_take_cpu(struct sf_seat *seat, uint64_t cpu_now_ns, uint32_t *ticks_ret);

#endif
