/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU clocks: the timers and events that send the sampling signal. Each kind arms one thread (or the
 * process), so that our signal comes about every entry->period_ns of CPU time. The weight of a sample
 * is read from the thread's CPU time clock of the kernel. So a kind whose signals are late or few
 * loses precision, but no CPU time.
 *
 * To add one: a line in sf_agent_clocks, its functions in a file NAME.c, its word in
 * docs/engines.md.
 */
#ifndef SF_AGENT_CLOCKS_CLOCKS_H
#define SF_AGENT_CLOCKS_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/signal/thread_table.h"

struct sf_agent_clock_kind {
	const char *name;        /* as in cpu-clock=NAME */
	bool per_thread;         /* else one for the process, armed with tid 0 and no entry */
	bool is_perf;            /* entry->clock is a descriptor */

	/* Whether it works here; if not, why. Leaves nothing behind. The pointer is NULL for a kind that always works. */
	bool (*check)(struct sf_error *err);
	/*
	 * Why this kind is not chosen by default although it works, as a text for the user; NULL: it
	 * may be chosen. The pointer may be NULL itself.
	 */
	const char *(*drawback)(void);
	/*
	 * Arms a clock for this thread, with a signal every entry->period_ns. The pid, cookie and signal
	 * in sf_handler are set before. False: the thread has ended, or no clock of this kind is left
	 * (then the next kind is tried for the thread). NULL, like `disarm`: there is no clock.
	 */
	bool (*arm)(struct sf_thread_entry *entry, int32_t tid);
	/* Any thread may call this, also more than once; of several calls only one disarms the clock. */
	void (*disarm)(struct sf_thread_entry *entry);
};

/* Most precise first, NULL at the end: perf, timer, itimer, tick. */
extern const struct sf_agent_clock_kind *const sf_agent_clocks[];
extern const struct sf_agent_clock_kind sf_agent_clock_perf, sf_agent_clock_timer,
	sf_agent_clock_itimer, sf_agent_clock_tick;

/*
 * A thread's clock: of `kind`, or where there is no more of it a timer. False: the thread is gone.
 */
bool sf_agent_clock_arm(const struct sf_agent_clock_kind *kind, struct sf_thread_entry *entry, int32_t tid);
/* Disarms the entry's clock of any kind. Signals that the clock has sent already may still come. */
void sf_agent_clock_disarm(struct sf_thread_entry *entry);
/*
 * In a forked child: forgets the entry's clock, and that of the process. A child has none of its parent's timers, and a timer
 * that it has made already may have the same number. A perf event that it has is its parent's, which goes on.
 */
void sf_agent_clock_forked(struct sf_thread_entry *entry);
void sf_agent_clock_perf_forked(struct sf_thread_entry *entry);
void sf_agent_clock_process_forked(void);
/*
 * Called by the sampler at intervals while a thread runs, because handlers cannot set clocks in the sampler's table
 * (sf_handler.config.remote_clocks). Sets the clock, with jitter, to the period that the handler wants. A longer period
 * is set at once. Other changes are made only as often as they are cheap: *spared_ns, 0 at first, is the time of the
 * next one. `rang`: the clock has expired since the last call. Setting a clock begins its period anew. So without that
 * there is no jitter: a thread that uses less than a period between two calls would never be sampled.
 */
void sf_agent_clock_tune(struct sf_thread_entry *entry, uint64_t now_ns, bool rang, uint64_t *spared_ns);
/* Whether the entry's descriptor still is its perf event; also true when it has none. Signal-safe. */
bool sf_agent_clock_perf_lives(const struct sf_thread_entry *entry);
/*
 * False: the program has closed our descriptor. Then it is forgotten, and arming gives another
 * clock.
 */
bool sf_agent_clock_lives(struct sf_thread_entry *entry);

/*
 * The kind to use: the configured one (1 + its place), or with 0 the cheapest that works and leaves
 * room for the target.
 */
const struct sf_agent_clock_kind *sf_agent_clock_choose(int wanted, struct sf_error *err);
/*
 * For threads that run between the kernel's ticks, so that their timers do not ring as they should;
 * `wanted` as above. NULL: none that works here, or the user chose one for all.
 */
const struct sf_agent_clock_kind *sf_agent_clock_between_ticks(int wanted);
/* The CPU time of a thread, in one system call; false: the thread has ended. Signal-safe. */
bool sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret);

/* How far apart the kernel's ticks are, 1/HZ; never 0. */
uint64_t sf_agent_clock_tick_ns(void);

/*
 * Timer coverage: whether a thread's timer expires while the thread runs. A timer expires only at the
 * kernel's own ticks. A thread that runs between two ticks, for example because a tick wakes it, gets
 * too few samples or none. Such a thread needs a perf clock. A thread can also be under-sampled by
 * chance: its clock is not switched for that, because a perf clock costs four times as much
 * (docs/benchmarks.md). Only the sampler's thread calls this.
 */
struct sf_timer_coverage {
	uint64_t cpu_ns, n_samples; /* at the last judgement */
	bool     was_seldom;        /* its result: too few samples */
	uint64_t sampled_ns, n_sampled; /* when a look last found a new sample */
};

/* Starts a new measurement at these counts. */
void sf_timer_coverage_begin(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples);

/*
 * Compares the thread's CPU clock with its number of samples, of which one is due for each period_ns
 * of CPU time. True: the thread gets too few samples, and chance does not explain it. All CPU time that was missed is
 * put down to the samples around it. So a thread that has had no sample for long is found sooner than one that has too few.
 */
bool sf_timer_misses(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns);

#endif
