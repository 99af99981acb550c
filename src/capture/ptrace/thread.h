/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread as the ptrace engine keeps it: the last look at it, and the time for which no sample stands yet.
 *
 * The accounts of a thread:
 *
 *   awake_ns + asleep_ns  elapsed time since its last samples, by its state at each look
 *   cpu_ns                CPU time by the kernel's count since its last sample
 *
 * A sample of a running thread takes cpu_ns and awake_ns. A sample of a runnable thread takes the part of awake_ns that
 * was not CPU time. A sample of a sleeping thread takes asleep_ns, without what CPU time is longer than awake_ns. CPU
 * time is measured, and being awake is only sampled. So where a sample's CPU time is longer than awake_ns, the rest is
 * taken from asleep_ns, and from awake_ns to come (below zero).
 *
 * Owned by the holding thread. The walking thread answers by the fields marked "shared".
 */
#ifndef SF_CAPTURE_PTRACE_THREAD_H
#define SF_CAPTURE_PTRACE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/ptrace/stack_leads.h"
#include "capture/sink.h"
#include "os/task.h"

/* A sleep of which an engine is told by the kernel: when it begins and ends. */
struct sf_sleep {
	uint64_t start_ns;       /* 0: the thread does not sleep, as far as is known */
	uint64_t woken_ns;       /* when it was ready to run again; 0: not yet, or nothing says so */
	bool     has_waker;
	int32_t  waker;          /* the thread that woke it; 0: an interrupt */
	char     waker_name[SF_TASK_NAME];
	uint64_t before_ns;      /* slept_ns at its start */
	uint64_t left_ns;        /* when the thread left its CPU, if it goes to sleep: the time of the record of its stack */
	uint64_t place;          /* of that record in a ring, in a batch, where there is no copy */
	uint32_t batch, ring;
	void    *record;         /* a copy of that record: a batch has ended since. malloc'd */
	bool     has_sample;
};

/* Of CPU time in the kernel, of which an engine has no samples. */
struct sf_kernel_time {
	bool     is_sought;      /* it is held when it runs, to find where that time is spent */
	bool     holds;          /* the hold under way is for that */
	uint8_t  n_idle;         /* looks in a row at which there was no reason for a hold */
	uint64_t counted_ns;     /* its CPU time by the kernel's count, at its last hold */
	uint64_t unsent_hold_ns; /* of holds that gave no sample: it is added to the next one's */
	uint64_t owed_ns;        /* for which its samples in system calls are to stand, when there is time beyond its other samples */
};

struct sf_thread {
	uint32_t serial;         /* in this session, from 1 */
	bool     watched;        /* its name matches --threads */
	bool     listed;         /* seen in the present scan */
	bool     ended;          /* as of the last list: struct sf_watch, keeps_ended */
	bool     asked;          /* a hold is under way */
	bool     was_busy;       /* another tracer had it at the last tick */
	bool     is_32_bit;      /* its program is: the thread is neither held nor read */
	bool     is_refused;     /* its process does not fit --filter any more */
	bool     by_samples;     /* it came into sight when the engine sampled the CPUs, and not each thread */
	bool     only_awake;     /* it is not read while it sleeps: a thread of the kernel, or of this process */
	bool     sampled;        /* its present sleep has a sample, which again() can extend */
	int16_t  cpu;            /* where it last ran, as far as is known; -1: to be asked */
	uint8_t  n_same;         /* ticks for which it has slept without a change, up to 255 */
	char     name[SF_TASK_NAME];
	struct sf_task task;
	struct sf_task_run run;
	struct sf_task_look look;
	uint64_t first_cpu_ns;   /* run.cpu_ns when it came into sight; what has been counted is the difference */
	uint64_t seen_ns;        /* time of the last tick that looked */
	uint64_t looked_ns;      /* ... and when its turn came */
	uint64_t asleep_due_ns;  /* when it is to be sampled next, if it sleeps */
	uint64_t tick_ns, asked_ns; /* of the hold under way */
	uint64_t cpu_ns;
	int64_t  awake_ns, asleep_ns;
	int64_t  awake_over_ns, asleep_over_ns; /* beyond the ticks of its samples (frozen/signal/ticks.h) */
	struct sf_task_look held;  /* the sleep that it was interrupted in; not placed: none */
	uint64_t held_switches;    /* run.switches before that, or at its next look in that sleep */
	bool     held_unseen;      /* it was not looked at again yet */
	uint32_t n_due;            /* samples in the present batch, of an engine that gets them in batches ... */
	uint64_t due_ns;           /* ... and the sum of their periods ... */
	bool     to_hold;          /* ... or it is to be held in their place */
	struct sf_weight over;     /* of events: of samples that were passed over since the last one of which use was made */
	uint64_t passed_ns;        /* periods of those that the engine passed over since the last sample of which it made use */
	bool     first_due;        /* its first sample is to be walked, whatever that costs */
	uint64_t exec_ns;          /* when it began to run another program, in which it has no sample in user mode yet; 0: none */
	struct sf_sleep sleep;     /* the present one, of an engine that is told of each: */
	uint64_t told_from_ns;     /* what is told of earlier times is in a look's sample */
	bool     is_told;          /* it was told of this thread's sleeps, so looks are not */
	uint64_t short_ns;         /* of sleeps that were too short for samples of their own, since the last sample of them; it is not in asleep_ns */
	uint64_t over_ns;          /* the same of sleeps that were passed over */
	uint64_t slept_ns;         /* for which its samples in sleep stand, all together */
	uint64_t ended_cpu_ns;     /* its CPU time, as the kernel said at its end; 0: unknown */
	uint64_t copies_end;       /* where the copies end that the kernel takes, and its stack; 0: not known */
	uint64_t beyond_ns;        /* of its CPU time: more than its samples can stand for, so far */
	struct sf_kernel_time kernel_time;
	bool begun;                /* of one that is known by its first sample only (sf_watch_knows_by_samples): its CPU time is counted since that */
	bool copy_was_full;        /* the last copy had no more room */
	bool ran;                /* it has a sample on a CPU: a rest of CPU time may be added to its last one */

	_Atomic uint32_t want;       /* shared: bytes of stack to copy */
	struct sf_stack_leads leads; /* shared: to its other stacks */
	_Atomic bool only_cut;       /* shared: the kernel's copy of a sleep, or at an event, was too short to be walked */
	_Atomic uint64_t needs_hold; /* shared: sp of the sleep whose walk needs more registers, 0: none */
	_Atomic uint32_t too_short;  /* shared: rises with each copy of the kernel that could not be walked for its end, falls with others */
	_Atomic bool again;          /* shared: the last copy was too short, or of one stack too few: take another soon */
	struct sf_weight carried;    /* the walker's: of samples whose copy was cut */
	uint32_t n_carried;          /* the walker's */
};

/* NULL when it is gone already, or memory ran out, or files (errno EMFILE). */
struct sf_thread *sf_thread_create(uint32_t serial, int32_t pid, int32_t tid, uint64_t now_ns);
/* A thread that has ended already, with what an engine has seen of it: nothing in /proc is open. NULL: no memory. */
struct sf_thread *sf_thread_create_ended(uint32_t serial, int32_t pid, int32_t tid, const char *name, uint64_t now_ns);
void sf_thread_destroy(struct sf_thread *thread);

/* Looks at the thread and keeps the accounts. False when it is gone. */
bool sf_thread_look(struct sf_thread *thread, uint64_t now_ns);

/*
 * The short form of a look, for a thread that has been running and sleeping in turns: whether it sleeps, as at its last
 * look. Then its time is counted, and what it ran in between is by its next look. False: it is to be looked at.
 */
bool sf_thread_sleeps_again(struct sf_thread *thread, uint64_t now_ns);

/* Whether the thread still sleeps in the sleep in which it was interrupted. */
bool sf_thread_was_held(const struct sf_thread *thread);

/* Counts the time since the last tick that looked as spent in what the thread was seen doing last. */
void sf_thread_pass(struct sf_thread *thread, uint64_t now_ns);

/*
 * A hold on the same CPU takes 10 us from the request on. One that takes longer than the second had to cross CPUs, or
 * to wait.
 */
#define SF_PROMPT_NS 10000
#define SF_ELSEWHERE_NS 25000

/*
 * Reads the thread's run counts again, after it was held and stood at `stood_ns`. Returns whether the place is evidence of
 * where the thread spends CPU time. It is not where the thread had been waiting for a CPU since before the tick: then it
 * stands where it was preempted. `in_wait`: it stands in a system call that it sleeps in, or at the end of one that only waits.
 * There it has mostly come since it was asked for, or has not run since it woke up: what it computed is elsewhere.
 */
bool sf_thread_settle(struct sf_thread *thread, uint64_t stood_ns, bool in_wait);

/* CPU time, on top of what the last look has counted. */
void sf_thread_give_cpu(struct sf_thread *thread, uint64_t cpu_ns);
/*
 * Adds the CPU time since the last look of a thread that has ended, where the kernel's record of its end has said more
 * (ended_cpu_ns). False: it has not.
 */
bool sf_thread_settle_end(struct sf_thread *thread);

/*
 * For an engine whose samples do not come from looks. Reads the thread's run counts: it was awake for as long as it ran
 * or waited for a CPU, and asleep for the rest. The state that its last look found counts no longer if it ran since
 * (*ran_ret). False when it is gone; then the accounts are as they were.
 */
bool sf_thread_measure(struct sf_thread *thread, uint64_t now_ns, bool *ran_ret);

/* The same, and looks what it does now, if it ran. */
bool sf_thread_see(struct sf_thread *thread, uint64_t now_ns);

/* The first of n equal shares of the accounts of an awake thread, for one of n samples. */
struct sf_weight sf_thread_take_share(struct sf_thread *thread, uint32_t n, uint64_t period_ns);

/*
 * Of a thread that was held to find where its CPU time in the kernel is spent: takes the part of beyond_ns for which a
 * sample of it stands. In a system call that is the CPU time since its last hold, as far as there is time; else what is
 * more than calls have need of. False: no sample.
 */
bool sf_thread_take_kernel_time(struct sf_thread *thread, bool in_call, uint64_t period_ns, struct sf_weight *ret);

/*
 * Pays what CPU time is longer than the time awake from the time asleep, as far as that goes: as a sample would that
 * takes it.
 */
void sf_thread_pay(struct sf_thread *thread);

/* Empties the accounts of an awake or of a sleeping thread into a sample's or a loss's weight. */
struct sf_weight sf_thread_take_awake(struct sf_thread *thread, bool on_cpu, uint64_t period_ns);
struct sf_weight sf_thread_take_asleep(struct sf_thread *thread, uint64_t period_ns);
/* The same of a sleep of `ns`, of which the kernel has told. The caller has taken it off the account. */
struct sf_weight sf_thread_take_sleep(struct sf_thread *thread, uint64_t ns, uint64_t period_ns);
/* The thread, which slept at the last look, has slept since, but for the CPU time that the kernel counted. */
void sf_thread_sleep_until(struct sf_thread *thread, uint64_t now_ns);

/* The size and parts of the next copy of the thread's stacks. */
static inline struct sf_stack_wish sf_thread_wish(struct sf_thread *thread)
{
	return sf_stack_leads_wish(&thread->leads, atomic_load_explicit(&thread->want, memory_order_relaxed));
}

/*
 * Whether the kernel's copies of its stack are not enough, as by perf: it is deeper than these can be, or the thread is
 * on another stack (stack_leads.h). Such a thread is to be held.
 */
#define SF_TOO_SHORT 64
static inline bool sf_thread_needs_longer_copies(const struct sf_thread *thread)
{
	return atomic_load_explicit(&thread->too_short, memory_order_relaxed) >= SF_TOO_SHORT;
}

static inline bool sf_thread_awake(const struct sf_thread *thread)
{
	return thread->look.state == SF_STATE_RUNNING;
}

#endif
