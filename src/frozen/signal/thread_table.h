/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread table: one entry for each watched thread of this process. An entry holds what a
 * signal handler needs about the thread that it interrupted. The table has a fixed size. An entry
 * is found by its thread id without a lock, in handlers too.
 *
 * The sampler claims an entry for a thread that it found, or a thread claims its own entry. The entry
 * is given up after the thread has ended. The accounts are as outside the process: the CPU
 * time that no sample or loss accounts for yet is the thread's CPU clock minus `accounted_ns`.
 */
#ifndef SF_FROZEN_SIGNAL_THREAD_TABLE_H
#define SF_FROZEN_SIGNAL_THREAD_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/runtime.h"

#define SF_THREAD_TABLE_SIZE 16384          /* a power of two */
#define SF_THREAD_WINDOW 64              /* an entry is so many places behind its thread's own place at most */
#define SF_ENTRY_NO_HANDLE 1     /* in handles: the thread has none in this runtime */

enum sf_thread_entry_flags {
	SF_ENTRY_REGISTERED = 1,   /* by the thread itself */
	SF_ENTRY_LEAVING = 2,      /* the thread is about to exec or to exit: no more requests to it */
	SF_ENTRY_UNWATCHED = 4,    /* the options exclude the thread */
	SF_ENTRY_DEAF = 8,         /* the thread blocks our signal */
	SF_ENTRY_PERF = 16,        /* `clock` is a perf descriptor, else a timer */
	SF_ENTRY_NAMED = 32,       /* the thread gave itself a name */
	SF_ENTRY_RENAMED = 64,     /* ... which the sampler has not written to the stream yet */
	SF_ENTRY_LEFT_RUNTIME = 128, /* the thread has left a runtime: its handles may be out of date */
	SF_ENTRY_IN_ROUNDS = 256,  /* a runtime walks the thread in rounds (agent/sampler/sampler.h): no requests to it */
};

struct sf_thread_entry {
	_Atomic int32_t  tid;          /* above 0: in use by that thread; else in use by none (thread_table.c) */
	_Atomic uint32_t flags;
	_Atomic uint32_t serial;       /* in the stream, from 1; never used again */
	_Atomic uint32_t label;        /* number, 0: none */
	_Atomic uint64_t n_samples;
	_Atomic uint64_t accounted_ns; /* thread CPU time that samples and losses account for */
	_Atomic uint64_t run_delay_ns; /* run-queue delay, for the next sample's wall time */
	int64_t  tick_carry_ns;        /* CPU time beyond the ticks of its samples; owned by the
					* handler, or by the holder of the thread */

	/* The sampler's request (agent/sampler/requests.h), and the weight of the answer (weight.h). */
	_Atomic uint32_t request;      /* number of the requested slot, plus one; 0: none */
	_Atomic uint64_t sent;         /* si_value of the last request's signal; 0: it came whole (sf_handler_lost_value()) */
	_Atomic uint64_t requested_ns; /* CLOCK_MONOTONIC of the request */
	_Atomic uint64_t requester_woke_ns; /* when the sampler woke that made it */
	_Atomic uint64_t requested_run_delay_ns; /* the thread's total run-queue delay just before the request */
	_Atomic uint64_t answered_ns;  /* since when the thread waits for a decision; 0: it does not */
	_Atomic uint32_t weight_decision; /* enum sf_weight_decision, the sampler's */

	/* The clock (agent/clocks/clocks.h). */
	_Atomic int32_t  clock;        /* perf descriptor or timer id, -1: none */
	_Atomic uint32_t clock_busy;   /* 1: the sampler is arming or replacing the clock */
	_Atomic uint32_t clock_unwanted; /* 1: a thread that is about to exec waits until the sampler
					  * has removed the clock */
	_Atomic int32_t  perf_fd;      /* si_fd of its perf clock, kept after the descriptor is closed:
					* a signal of ours may still be pending. 0: no perf clock yet */
	_Atomic uint64_t clock_id;     /* of a perf descriptor (PERF_EVENT_IOC_ID), to detect that the
					* program has reused the number */
	_Atomic uint64_t period_ns;    /* that the handler wants: longer than the option's period
					* while the clock backs off */
	_Atomic uint64_t set_period_ns; /* that the sampler has set last, where it sets the clock
					 * (sf_handler_config.remote_clocks) */
	uint64_t random;               /* for jitter; owned by the signal handler */
	uint32_t rings_passed_over;    /* of its timer, before the next sample (rearm.h); owned by the
					* signal handler once the timer is armed */

	/* Calls of stillframe's API, in which the thread is not sampled. */
	_Atomic uint64_t api_since_ns; /* when the present call began; 0: none */
	_Atomic uint64_t api_ns;       /* total length of ended calls, which the sampler subtracts
					* from the thread's wall time */

	_Atomic uint64_t event_amount; /* of events (event.h) that no sample or loss stands for yet */

	_Atomic uint64_t handles[SF_MAX_RUNTIMES]; /* of the thread in each runtime; may be out of
					* date; SF_ENTRY_NO_HANDLE; 0: not looked up yet */
};

/* `entries`: the caller's memory for SF_THREAD_TABLE_SIZE entries, zeroed. All signal-safe, any thread. */
struct sf_thread_entry *sf_thread_table_find(struct sf_thread_entry *entries, int32_t tid);   /* NULL: no entry */
/* The thread's entry, a new one if need be (then *new_ret, and it must be filled); NULL: no room. */
struct sf_thread_entry *sf_thread_table_claim(struct sf_thread_entry *entries, int32_t tid, bool *new_ret);
void sf_thread_table_leave(struct sf_thread_entry *entry);   /* the thread has ended */

/*
 * The weight of a sample or loss of this thread: the CPU time since the last one, and the number of
 * ticks in that time (at least 1, of entry->period_ns). Two callers that race share the time.
 * Signal-safe.
 */
uint64_t sf_thread_entry_take_cpu(struct sf_thread_entry *entry, uint64_t cpu_now_ns, uint32_t *ticks_ret);

#endif
