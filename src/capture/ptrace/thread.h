/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread as the engines outside (ptrace, perf, bpf) keep it: the last look at it, and the time for which no sample
 * stands yet (account.h).
 *
 * Owned by the holding thread. The walking thread has `carried`, and writes the fields marked "shared".
 */
#ifndef SF_CAPTURE_PTRACE_THREAD_H
#define SF_CAPTURE_PTRACE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/ptrace/account.h"
#include "capture/ptrace/stack_copy.h"
#include "capture/sink.h"
#include "os/task.h"

/* Where its stack is read, and how: the next copy (stack_copy.h). The walking thread answers with the shared ones. */
struct sf_copy_needs {
	_Atomic uint32_t size;        /* shared: bytes of stack */
	struct sf_stack_leads leads;  /* shared: to the thread's other stacks */
	_Atomic bool chain;           /* shared: a walk has ended where sf_still.chain would lead on */
	_Atomic bool again;           /* shared: the last copy was too short, or of one stack too few: take another soon */
	_Atomic uint32_t deep_size;   /* shared: bytes of stack for a hold in place of samples of a deep stack; 0: not known */
	_Atomic uint32_t cut_at;      /* shared: bytes of the longest copy of the kernel's, but of sleeps and events, that was too short to be walked; 0: none was */
	_Atomic uint32_t only_cut;    /* shared: bytes that the kernel's copy of a sleep, or at an event, had room for, and was too short to be walked; 0: none was */
	_Atomic uint32_t n_too_short; /* shared: rises with each copy of the kernel whose end cut the walk, falls with others */
	_Atomic bool below_sp;        /* shared: walks need what lies below sp, which the kernel's copies do not have; until n_too_short has fallen to 0 */
	_Atomic uint64_t root_sp;     /* shared: sp of the thread's first frame, where the last walk that was whole came to it; 0: none */
	_Atomic uint32_t n_same_root; /* shared: walks in a row that came to root_sp, at most SF_ROOT_SETTLED */
	_Atomic uint64_t hold_at_sp;  /* shared: sp of the sleep whose walk needs registers that only a hold has; 0: none */
};

/* How the thread uses its CPUs, measured every 100 ms. */
#define SF_SHORT_TURN_NS 1000000
#define SF_MANY_CALLS 64           /* of 256 */
struct sf_thread_use {
	uint64_t from_ns;          /* the begin of the measure, ... */
	uint64_t cpu_ns, switches; /* ... and the thread's counts then */
	bool     is_much;          /* it runs for an eighth of the time */
	bool     is_some;          /* ... for a hundredth */
	bool     turns_are_short;  /* less than SF_SHORT_TURN_NS at a time, on average */
	uint8_t  in_calls;         /* the part of its last samples on a CPU that were in system calls, of 256 */
};

/* Of a thread that was displaced (displaced.h): in which places it ran at the moment that the holding thread chose. */
enum sf_displaced_place {
	SF_DISPLACED_NOWHERE,
	SF_DISPLACED_IN_CALL,      /* only in a system call that does more than wait */
	SF_DISPLACED_ANYWHERE,
};

/* The hold that is under way, and the last one of the thread in a sleep. */
struct sf_thread_hold {
	bool     is_requested;   /* one is under way: */
	uint64_t tick_ns;        /* the tick that it is for */
	uint64_t requested_ns;
	bool     was_busy;       /* another tracer had the thread at the last tick */
	uint64_t unsent_ns;      /* for which holds stopped the thread that gave no sample: it is added to the next one's */
	enum sf_displaced_place displaced;
	struct sf_task_look sleep; /* the sleep that was interrupted; not placed: none */
	uint64_t switches;       /* run.switches before that, or at the next look in that sleep */
	uint64_t cpu_ns;         /* run.cpu_ns before that */
	bool     is_new;         /* it was not seen asleep since */
	bool     kind_is_known;  /* the next one was read: before the first hold */
	bool     stays_in_kernel; /* sf_task_stays_in_kernel: it is never held */
};

/* By perf, which gets samples in batches: those of the present batch, and the ones that the cost limit passed over. */
struct sf_thread_batch {
	uint32_t n;              /* samples to walk ... */
	uint64_t period_ns;      /* ... and the sum of their periods */
	bool     has_first;      /* the thread's first sample is among them, and is walked whatever that costs */
	uint32_t n_held;         /* of this batch and those before: in place of so many the thread is to be held, ... */
	uint64_t held_ns;        /* ... and the CPU time for which they were to stand, at the end of the batch */
	bool     is_due;         /* it is in the list of those that have samples in the batch */
	bool     is_settled;     /* it has used so much that it needs no finer samples than were asked for */
	uint64_t passed_ns;      /* periods of samples that were passed over since the last one that was walked */
	struct sf_weight passed; /* the same of samples of events */
};

/* A sleep whose begin and end the kernel records. */
struct sf_sleep {
	uint64_t start_ns;       /* 0: the thread does not sleep, as far as is known */
	uint64_t woken_ns;       /* when it was ready to run again; 0: not yet, or without a record */
	bool     has_waker;
	int32_t  waker;          /* the thread that woke it; 0: an interrupt */
	char     waker_name[SF_TASK_NAME];
	uint64_t before_ns;      /* sleeps.sampled_ns at its start */
	uint64_t left_ns;        /* when the thread left its CPU, if it goes to sleep: the time of the record of its stack */
	uint64_t place;          /* of that record in a ring, in a batch, where there is no copy */
	uint32_t batch, ring;    /* batch 0: no record, or no memory for its place */
	void    *record;         /* a copy of that record: a batch has ended since. malloc'd */
	uint64_t wanted_ns;      /* its length when a sample of it was last due; 0: never */
	bool     had_room;       /* for that sample, which it has if there is a stack */
	bool     has_sample;
	bool     to_read;        /* that record's copy is not all of the stack, which can be read while the thread sleeps */
};

/* The thread's sleeps, of an engine that has the kernel's records of them. */
struct sf_thread_sleeps {
	bool     are_recorded;   /* samples of sleeps come from records, and not from looks; ... */
	uint64_t from_ns;        /* ... from this time on */
	uint64_t met_ns;         /* when the thread came into sight: its account begins then */
	uint64_t sampled_ns;     /* for which samples of sleeps stand, all together */
	uint64_t short_ns;       /* of sleeps that were too short for a sample each, since the last sample of them; not in asleep_ns */
	uint64_t passed_ns;      /* the same of sleeps that the cost limit passed over */
};

/* CPU time in the kernel, which the events may not sample (perf/holds.h). */
struct sf_kernel_time {
	bool     is_sought;      /* the thread is held when it runs, to find where that time is spent */
	bool     holds;          /* the hold under way is for that */
	uint8_t  n_idle;         /* looks in a row at which there was no reason for a hold */
	uint64_t counted_ns;     /* its CPU time by the kernel's count, at its last hold */
	uint64_t owed_ns;        /* for which its samples in system calls are to stand, when there is time beyond its other samples */
};

/* By perf: the mapping of the stack that the thread is on (perf/stacks.h). */
struct sf_thread_stack {
	uint64_t sp;             /* of the last record whose copy ended before its room; 0: there was none */
	uint64_t start, end;     /* as found by a look; 0: not yet */
	bool     is_plain;       /* its holes may be filled */
	bool     has_hole;       /* the copy of that record ended amid the stack */
};

/* Samples whose copies were cut, and for whose time the next one stands. */
struct sf_carried {
	struct sf_weight weight;
	uint32_t n;
};

struct sf_thread {
	uint32_t serial;         /* in this session, from 1 */
	char     name[SF_TASK_NAME];
	uint64_t met_scan;       /* the number of the scan that found it */
	struct sf_task task;

	bool     watched;        /* its name matches --threads */
	bool     is_32_bit;      /* its program is: the thread is neither held nor read */
	bool     is_refused;     /* its process does not fit --filter any more */
	bool     by_samples;     /* it had no sample when the engine began to sample the CPUs, and not each thread */
	bool     only_awake;     /* it is not read while it sleeps: a thread of the kernel, or of this process */
	bool     listed;         /* the present scan has found it */
	bool     is_gone;        /* a tick found that it has ended: a thread that has its id now is another one */
	bool     ended;          /* as of the last list: struct sf_watch, keeps_ended */

	struct sf_task_run run;
	struct sf_task_look look;
	uint64_t glance_switches; /* at the last comparison with the whole process (unsampled.h) */
	uint64_t first_cpu_ns;   /* run.cpu_ns when it came into sight; what has been counted is the difference */
	uint64_t seen_ns;        /* time of the last tick that looked ... */
	uint64_t looked_ns;      /* ... and when the thread's turn came */
	uint64_t ended_cpu_ns;   /* its CPU time by the kernel's record of its end; 0: unknown */
	uint64_t exited_ns;      /* when it exited, by a record; 0: none. From then on its id's counts may be another thread's */
	struct sf_on_cpu on_cpu; /* the same since run.cpu_ns was read, by the records of its switches (account.h) */
	uint64_t exec_ns;        /* when it began to run another program, in which it has no sample in user mode yet; 0: none */
	int16_t  cpu;            /* where it last ran, as far as is known; -1: to be read */
	uint8_t  n_same;         /* ticks for which it has slept without a change, up to 255 */
	bool     copy_was_full;  /* the last copy had no more room */

	struct sf_thread_account account;
	bool     begun;          /* it is known by its first sample only (sf_watch_knows_by_samples): CPU time is counted since that, ... */
	uint64_t before_ns;      /* ... and this, from before it was to be known so, for which that sample stands, too */
	bool     ran;            /* it has a sample on a CPU: a rest of CPU time may be added to its last one */
	bool     sampled;        /* its present sleep has a sample, which again() can extend */
	uint32_t n_ran;          /* by ptrace: samples on a CPU ... */
	uint32_t n_looks;        /* ... and looks, ... */
	uint64_t looked_for_ns;  /* ... which stand for so much elapsed time */
	uint64_t asleep_due_ns;  /* when it is sampled next, if it sleeps */

	struct sf_thread_use use;
	struct sf_thread_hold hold;
	struct sf_thread_batch batch;
	struct sf_sleep sleep;
	struct sf_thread_sleeps sleeps;
	struct sf_kernel_time kernel_time;

	struct sf_copy_needs needs;
	struct sf_thread_stack stack;
	struct sf_carried carried[2]; /* [1]: of samples on a CPU. The walking thread's */
};

/* NULL when it is gone already, or memory ran out, or files (errno EMFILE). */
struct sf_thread *sf_thread_create(uint32_t serial, int32_t pid, int32_t tid, uint64_t now_ns);
/* A thread that has ended already, with what an engine has seen of it: nothing in /proc is open. NULL: no memory. */
struct sf_thread *sf_thread_create_ended(uint32_t serial, int32_t pid, int32_t tid, const char *name, uint64_t now_ns);
void sf_thread_destroy(struct sf_thread *thread);

/* Reads what the thread does, and keeps its account. False when it is gone. */
bool sf_thread_look(struct sf_thread *thread, uint64_t now_ns);

/*
 * The short form of a look, for a thread that runs and sleeps in turns: whether it sleeps, as at its last look. Then its
 * time is counted; what it ran in between is counted by its next look. False: a look is needed.
 */
bool sf_thread_sleeps_again(struct sf_thread *thread, uint64_t now_ns);

/* Before a look of a tick at now_ns. */
void sf_thread_count_look(struct sf_thread *thread, uint64_t now_ns);

/* After a look: measures how the thread uses its CPUs, if it is time. */
void sf_thread_measure_use(struct sf_thread *thread);

/* After a sample on a CPU. */
void sf_thread_note_place(struct sf_thread *thread, bool in_call);

/*
 * Whether the thread is to be held when it is displaced (displaced.h). It often sleeps or is often in the kernel, so the
 * scheduler has a part in where another hold finds it. A thread that uses next to nothing would be displaced too seldom.
 */
static inline bool sf_thread_needs_displacement(const struct sf_thread *thread)
{
	return thread->use.is_some && (thread->use.turns_are_short || thread->use.in_calls > SF_MANY_CALLS);
}

/*
 * Another thread of the process has executed a program, and goes on under this one's id, with its counts. Its CPU time up to the
 * last reading of them is in its own account. NULL: nothing is known of it, and its counts are read now.
 */
void sf_thread_take_over(struct sf_thread *thread, const struct sf_thread *other);

/* Whether the thread still sleeps in the sleep in which it was interrupted. */
bool sf_thread_was_held(const struct sf_thread *thread);

/* Counts the time since the last tick that looked as time in the state that this look found. */
void sf_thread_add_elapsed(struct sf_thread *thread, uint64_t now_ns);

/*
 * A hold on the same CPU takes 10 us from the request on. One that takes longer than the second had to cross CPUs, or
 * to wait.
 */
#define SF_PROMPT_NS 10000
#define SF_ELSEWHERE_NS 25000

/*
 * Reads the thread's run counts again, after a hold that stopped it at `stood_ns`. Returns whether the place where it
 * stopped is evidence of where it spends CPU time. That place is no evidence if the thread had waited for a CPU since
 * before the tick: then it is the place of its preemption. `in_wait`: the thread stopped in a system call that it sleeps
 * in, or at the end of one that only waits. It has mostly come there after the request, or has not run since it woke up:
 * what it computed is elsewhere. A thread that was displaced (hold.displaced) stands where it ran, also in such a call,
 * unless the holding thread had to wait for its CPU.
 */
bool sf_thread_settle(struct sf_thread *thread, uint64_t stood_ns, bool in_call, bool in_wait);

/*
 * For an account that is kept by sf_thread_measure(): the time from the last look up to now, at the release of a hold that
 * stopped the thread for `stopped_ns` at most. The thread was awake when the hold was requested. So from then on it ran,
 * waited for a CPU, or was stopped. `before`: its run counts before sf_thread_settle().
 */
void sf_thread_add_hold(struct sf_thread *thread, const struct sf_task_run *before, uint64_t stopped_ns, uint64_t now_ns);

/*
 * For an engine whose samples do not come from looks. Reads the thread's run counts: it was awake for as long as it ran
 * or waited for a CPU, and asleep for the rest. The state that its last look found counts no longer if it ran since
 * (*ran_ret). False when it is gone; then the account is as it was.
 */
bool sf_thread_measure(struct sf_thread *thread, uint64_t now_ns, bool *ran_ret);

/* The same, with a look at the thread if it ran. */
bool sf_thread_measure_and_look(struct sf_thread *thread, uint64_t now_ns);

/* The thread, which slept at the last look, has slept since, but for the CPU time that the kernel counted. */
void sf_thread_sleep_until(struct sf_thread *thread, uint64_t now_ns);

/* The size and parts of the next copy of the thread's stacks. */
struct sf_copy_plan sf_thread_copy_plan(struct sf_thread *thread);

/*
 * Whether the kernel's copies of its stack are not enough, as by perf: it is deeper than these can be, or the thread is
 * on another stack (stack_copy.h). Such a thread is to be held.
 */
#define SF_TOO_SHORT 64
static inline bool sf_thread_needs_longer_copies(const struct sf_thread *thread)
{
	return atomic_load_explicit(&thread->needs.n_too_short, memory_order_relaxed) >= SF_TOO_SHORT;
}

/*
 * Bytes of its stack, from sp on, up to where its first frame was at the last walk that came to it. 0: that is not known, or the
 * thread uses other stacks, too, or what lies below sp.
 */
uint64_t sf_thread_whole_size(struct sf_thread *thread, uint64_t sp);

/*
 * Whether a copy of so many bytes from sp on is certainly cut: many walks in a row have come to the same first frame, which lies
 * farther away, and nearer than stacks are long.
 */
#define SF_ROOT_SETTLED 32
bool sf_thread_is_deeper(struct sf_thread *thread, uint64_t sp, uint32_t bytes);

/* Whether anything of it is sampled. Until the next scan ends it, a thread of a process that does not fit the filter is known. */
static inline bool sf_thread_is_sampled(const struct sf_thread *thread)
{
	return thread->watched && !thread->is_refused;
}

static inline bool sf_thread_awake(const struct sf_thread *thread)
{
	return thread->look.state == SF_STATE_RUNNING;
}

#endif
