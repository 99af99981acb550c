/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of this process that are watched: what a signal handler must know of the thread
 * that it interrupted. A table of fixed size, found by thread id without a lock, in handlers too.
 *
 * A seat is claimed for a thread (by the sampler that found it, or by the thread itself) and
 * given up when the thread has ended. The accounts follow capture/thread.h: CPU time that no sample
 * or loss has spoken for yet is what the thread's clock says now minus `spoken_ns`.
 */
#ifndef SF_FROZEN_SEATS_H
#define SF_FROZEN_SEATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/runtime.h"

#define SF_SEATS 16384          /* a power of two */
#define SF_NO_SEAT UINT32_MAX
#define SF_SEAT_NO_HANDLE 1     /* in handles: it has none */

enum sf_seat_flags {
	SF_SEAT_REGISTERED = 1,   /* by the thread itself */
	SF_SEAT_LEAVING = 2,      /* it is about to exec or to exit: ask nothing of it any more */
	SF_SEAT_UNWATCHED = 4,    /* the policy passes it over */
	SF_SEAT_DEAF = 8,         /* it blocks our signal */
	SF_SEAT_PERF = 16,        /* `clock` is a perf descriptor, else a timer */
	SF_SEAT_NAMED = 32,       /* the thread gave itself a name */
	SF_SEAT_RENAMED = 64,     /* ... which the sampler has not told yet */
	SF_SEAT_LEFT_RUNTIME = 128, /* it has left a runtime: its handles may be out of date */
};

struct sf_seat {
	_Atomic int32_t  tid;          /* above 0: a thread's; else nobody's (seats.c) */
	_Atomic uint32_t flags;
	_Atomic uint32_t serial;       /* in the stream, from 1; never used again */
	_Atomic uint32_t label;        /* number, 0: none */
	_Atomic uint64_t spoken_ns;    /* thread CPU time up to which samples and losses spoke */
	_Atomic uint64_t waited_ns;    /* ready without a CPU, for the next sample's wall time */
	_Atomic uint64_t period_ns;    /* of its clock now: longer than asked for when it backs
					* off */
	_Atomic uint64_t set_ns;       /* ... as the sampler set it last, where it does that
					* (clocks_apart) */
	_Atomic uint64_t n_samples;
	_Atomic uint32_t asked;        /* a request is under way: slot number + 1 */
	_Atomic uint64_t asked_ns;     /* ... by a sampler that woke then (CLOCK_MONOTONIC) */
	_Atomic uint64_t asked_wait_ns; /* ... when it had waited for a CPU for so long in all */
	_Atomic uint64_t judge_ns;     /* it answered then, and wants to know how to weigh
					* (weight.h); 0: no */
	_Atomic uint32_t judged;       /* ... and this is how */
	_Atomic int32_t  clock;        /* perf descriptor or timer id, -1: none */
	_Atomic int32_t  rings_as;     /* si_fd of its perf clock, kept when that is closed: a signal may
					* be under way still, and it is ours. 0: it never had one */
	_Atomic uint64_t clock_id;     /* of a perf descriptor (PERF_EVENT_IOC_ID): is it still
					* ours? */
	_Atomic uint64_t visit_since_ns; /* it is in a call of ours, no place to sample it; 0: it is
					  * not */
	_Atomic uint64_t visited_ns;   /* length of such calls, for the sampler to take off its
					* account */
	_Atomic uint64_t handles[SF_MAX_RUNTIMES]; /* the thread in each runtime, which may be out of
					* date; SF_SEAT_NO_HANDLE; 0: not looked for yet */
	uint64_t random;               /* the handler's: for jitter */
	int64_t  over_ns;              /* the handler's, or who holds it: CPU time beyond the ticks
					* of its samples */
};

/* Zeroed memory for SF_SEATS seats is the caller's. All signal-safe, any thread. */
struct sf_seat *sf_seats_find(struct sf_seat *seats, int32_t tid);   /* NULL: has none */
/* The thread's seat, a new one if need be (then *new_ret, and it must be filled); NULL: no room. */
struct sf_seat *sf_seats_claim(struct sf_seat *seats, int32_t tid, bool *new_ret);
void sf_seats_leave(struct sf_seat *seat);   /* the thread has ended */

/*
 * What a sample or loss of this thread speaks for: CPU time since the last one, and the number of
 * ticks in it (at least 1, of seat->period_ns). Taken once: two that race share it. Signal-safe.
 */
uint64_t sf_seat_take_cpu(struct sf_seat *seat, uint64_t cpu_now_ns, uint32_t *ticks_ret);

#endif
