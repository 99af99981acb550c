/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a thread (thread.h): the time for which no sample stands yet, and what samples take out of it.
 *
 *   awake_ns + asleep_ns  elapsed time since its last samples, by its state at each look
 *   cpu_ns                CPU time by the kernel's count since its last sample
 *
 * A sample of a running thread takes cpu_ns and awake_ns. A sample of a runnable thread takes the part of awake_ns that
 * was not CPU time. A sample of a sleeping thread takes asleep_ns, less the CPU time that is longer than awake_ns. CPU
 * time is measured, and being awake is only sampled. So where a sample's CPU time is longer than awake_ns, the rest is
 * taken from asleep_ns, and from awake_ns to come (below zero).
 *
 * When a thread has ended, the kernel's count of its CPU time can no longer be read. Then the account has the last count,
 * and what the records of the thread's switches add to it since.
 *
 * The kernel writes the count of an inherited event when its thread ends, too. That one may be wrong. Where two threads
 * with the same events follow each other on a CPU, the kernel lets them exchange all of their events, and exchanges the
 * counts in the order of its lists (perf_event_context_sched_out() and perf_event_sync_stat() in kernel/events/core.c).
 * In the lists of the thread whose events were opened, and of those that have inherited them, events of two kinds for
 * several CPUs are in different orders. So where switches are recorded, a thread may end with the count of another event.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_ACCOUNT_H
#define SF_CAPTURE_PTRACE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sink.h"

struct sf_thread;

/* Time for which no sample stands yet. */
struct sf_thread_account {
	uint64_t cpu_ns;
	int64_t  awake_ns, asleep_ns;
	int64_t  awake_over_ns, asleep_over_ns; /* beyond the ticks of its samples (frozen/signal/ticks.h) */
	uint64_t beyond_ns;      /* CPU time, not in cpu_ns, that is more than the samples of events can stand for */
};

/* --- the CPU time by the records of switches --- */

/*
 * By which the kernel's count of a thread that runs may be late: it is brought up to date at each of the kernel's ticks, at least.
 * A CPU without ticks (nohz_full), and one whose host does not run it, do that later.
 */
#define SF_ON_CPU_LATE_NS 10000000

/* The CPU time of a thread, by the kernel's count and the records since. */
struct sf_on_cpu {
	uint64_t cpu_ns;         /* the kernel's count, as it was last read ... */
	uint64_t counted_ns;     /* ... and when that was; 0: never */
	uint64_t exact_ns;       /* the count has all CPU time up to then: it has changed since, or the thread slept; 0: unknown */
	bool     is_followed;    /* there was a record of a switch; then: */
	uint64_t since_ns;       /* when the thread got its CPU; 0: it has none, as far as is known */
	uint64_t ran_ns;         /* since the count was read, by the records */
	uint64_t late_ns;        /* by which the count may be late, as of a thread that ran when it was read */
};

/* The kernel's count has been read. */
void sf_on_cpu_counted(struct sf_on_cpu *on_cpu, uint64_t cpu_ns, uint64_t now_ns);

/* The thread slept when its count was read. */
static inline void sf_on_cpu_slept(struct sf_on_cpu *on_cpu)
{
	on_cpu->exact_ns = on_cpu->counted_ns;
}

/* A record: the thread gets its CPU, or leaves it. Where the first one says that it leaves, it has run since before. */
void sf_on_cpu_switch(struct sf_on_cpu *on_cpu, uint64_t time_ns, bool leaves);

/* Records may be missing: the next one is the first again. */
static inline void sf_on_cpu_forget(struct sf_on_cpu *on_cpu)
{
	on_cpu->is_followed = false;
	on_cpu->since_ns = 0;
}

/* The records of switches. */
struct sf_switches {
	bool     are_recorded;   /* there are events of them ... */
	uint64_t from_ns;        /* ... and all records from this time on; UINT64_MAX: the events pause */
};

/* Whether all records of its switches since the count was read have been taken. */
static inline bool sf_on_cpu_is_complete(const struct sf_on_cpu *on_cpu, const struct sf_switches *switches)
{
	return switches->are_recorded && on_cpu->counted_ns && on_cpu->counted_ns >= switches->from_ns;
}

/* The count at the thread's end. `ended_ns`: that of the kernel's record of its end; 0: there is none. */
uint64_t sf_on_cpu_end(const struct sf_on_cpu *on_cpu, uint64_t ended_ns, const struct sf_switches *switches, uint64_t now_ns);

/* --- what is added --- */

/* CPU time, on top of what the last look has counted. */
void sf_thread_add_cpu(struct sf_thread *thread, uint64_t cpu_ns);
/* What it has used, waited and slept until now, and for which no sample stands, is in no account. */
void sf_thread_begin_again(struct sf_thread *thread);
/*
 * Adds the CPU time of an ended thread since its last look, by the kernel's records (sf_on_cpu_end). False: there is no
 * more.
 */
bool sf_thread_settle_end(struct sf_thread *thread, const struct sf_switches *switches);

/* --- what samples take --- */

/* The first of n equal shares of the account of an awake thread, for one of n samples. */
struct sf_weight sf_thread_take_share(struct sf_thread *thread, uint32_t n, uint64_t period_ns);
/*
 * The time that a hold takes in place of samples (batch.n_held). Then no more are due: the time since the batch is the next
 * samples'.
 */
struct sf_weight sf_thread_take_held(struct sf_thread *thread, uint64_t period_ns);

/*
 * Of a thread that was held to find where its CPU time in the kernel is spent: takes the part of beyond_ns for which a
 * sample of it stands. In a system call that is the CPU time since its last hold, as far as there is time; else what is
 * more than samples in calls may take. False: no sample.
 */
bool sf_thread_take_kernel_time(struct sf_thread *thread, bool in_call, uint64_t period_ns, struct sf_weight *ret);

/* Takes what CPU time is longer than the time awake from the time asleep, as far as there is any: as a sample does. */
void sf_thread_balance(struct sf_thread *thread);

/* Empties the account of an awake or of a sleeping thread into the weight of a sample or a loss. */
struct sf_weight sf_thread_take_awake(struct sf_thread *thread, bool on_cpu, uint64_t period_ns);
struct sf_weight sf_thread_take_asleep(struct sf_thread *thread, uint64_t period_ns);
/* Takes a recorded sleep of `ns` until end_ns off the account, which has none of the time before the thread came into sight. */
void sf_thread_take_off_sleep(struct sf_thread *thread, uint64_t ns, uint64_t end_ns);
/* As sf_thread_take_asleep(), of a recorded sleep of `ns` that has been taken off the account. */
struct sf_weight sf_thread_take_sleep(struct sf_thread *thread, uint64_t ns, uint64_t period_ns);

/*
 * Whether the thread has used so much CPU time since its last sample that it is held at a tick, displaced or not. A thread
 * that runs little is displaced seldom, and at its end the time since its last sample is a loss if it is more than the
 * thread's samples stand for. So that is the most for it, and its first sample does not wait at all.
 */
bool sf_thread_is_overdue(const struct sf_thread *thread, uint64_t period_ns);

#endif
