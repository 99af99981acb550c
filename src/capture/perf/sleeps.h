/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded sleeps. The kernel gives a sample with the stack when a thread leaves its CPU, a record when it leaves it or
 * gets one, and, where the tracepoints sched_waking and sched_wakeup may be read, records of the thread that wakes it and
 * of the time at which it was ready to run.
 *
 * A sleep that lasts for `min_ns` has a sample of its own, with its exact length: from when the thread left its CPU
 * until it was ready to run. Without a record of that, until it was on a CPU again, but all sleeps together are no longer
 * than the kernel's counts leave room for. Of shorter sleeps, one for each `min_ns` of their sum has a sample, which
 * stands for that sum. A sleep that goes on at the end of a batch has its sample then, and its further time is added by
 * the looks at sleeping threads (capture/ptrace/). A thread without a record, since it has slept since before the
 * recording, or since a record was lost, is looked at as without all this.
 *
 * Walking the stacks of sleeps may take half of the limit (--max-cost), and less where samples of CPU time are passed
 * over (budget.h). Where there are more sleeps than that allows for, a part of them is passed over, the shorter the more
 * likely. The thread's next sample that might have been passed over stands for them, too, or at its end the last one. A
 * sleep that is passed over and goes on keeps its record, and has a sample when it is long enough for that.
 *
 * Every switch is copied by the kernel, whatever its length will be. Where the copies would cost more than the limit
 * (--max-cost) allows, the events pause, and sleeping threads are looked at meanwhile. Records of wakings come for all
 * threads of the machine. Where they would cost more than half of the limit, there are none any more.
 */
#ifndef SF_CAPTURE_PERF_SLEEPS_H
#define SF_CAPTURE_PERF_SLEEPS_H

#include "capture/perf/budget.h"
#include "capture/perf/events.h"
#include "capture/perf/record.h"
#include "capture/perf/waits.h"
#include "capture/ptrace/thread.h"

#define SF_PERF_SLEEP_MIN_NS 1000000
#define SF_PERF_WALK_CREDIT_NS 20000000 /* a burst of sleeps whose walks cost so much is let through */

struct sf_perf;

/* A thread that left its CPU in an earlier batch, and whose sleep is too short as yet. */
struct sf_perf_kept_sleep {
	int32_t  tid;
	uint32_t n_bytes;        /* of the copy of its record, at its thread */
};

/* Stacks of threads of one process. */
#define SF_PERF_FULL 16

struct sf_perf_full {
	int32_t  pid;
	size_t   n;
	uint64_t sps[SF_PERF_FULL];
};

#define SF_PERF_WAKERS 64
/* Bytes of the copies while a command starts: the loader's frames, and behind them the arguments and the environment. */
#define SF_PERF_STACK_LAUNCHED 32768u

struct sf_perf_waker {
	int32_t tid;
	char    name[SF_TASK_NAME];
};

struct sf_perf_sleeps {
	bool     on;                /* sleeps are recorded ... */
	bool     has_wakings;       /* ... and wakings */
	char     reason[160];       /* why not the one or the other; "": nothing is missing, or neither was wanted or possible */
	uint64_t min_ns;
	struct sf_perf_events switches, wakings;
	uint16_t waking;            /* the number of sched_waking; sched_wakeup follows when the woken thread is on a queue */
	int      woken_offset;      /* of the woken thread's id in the fields of both */
	bool     knows_kernel;      /* the kernel's functions were read, if they may be */
	struct sf_perf_waits waits; /* once knows_kernel */
	uint64_t began_ns;          /* when the present batch began */
	uint32_t n_batch;
	SF_VEC(struct sf_thread *) noted; /* threads that left their CPUs in this batch */
	SF_VEC(struct sf_perf_kept_sleep) kept;
	uint64_t n_kept_bytes;
	uint64_t n_switches, n_wakings; /* since the limit was last looked at, which may be several batches */
	uint64_t n_copied;          /* bytes of stacks, since then */
	struct sf_perf_waker wakers[SF_PERF_WAKERS]; /* the last ones, by their ids modulo the number */
	uint64_t n_wanted, n_sent;  /* sleeps since then that should have samples, and those that there is room for, each once */
	uint64_t wanted_ns;         /* the lengths of the former */
	uint64_t all_from_ns;       /* sleeps of this length have samples, of shorter ones a part; 0: all have */
	uint64_t n_wanted_ever, n_sent_ever;
	int64_t  credit_ns;         /* CPU time that their walks may take */
	uint32_t stack_wanted;      /* bytes that later copies should have; 0: as many as now */
	uint32_t later_bytes;       /* bytes of the copies of a launched command once it has started, if they are enough; 0: as many as now */
	uint64_t attached_ns;       /* when that command was launched */
	uint32_t too_short;         /* the size of copies that was last found too short; 0: none was */
	struct sf_perf_full full;   /* copies that have no more room, in this batch */
	uint32_t n_full_looks;      /* at how deep such stacks are */
	uint64_t paused_until_ns;   /* 0: the events count */
	int64_t  debt_ns;           /* of time in which the copies would have cost too much ... */
	int64_t  wakings_debt_ns;   /* ... and the records of wakings */
	bool     gave_up_wakings;   /* since there are too many on this machine */
	uint64_t paid_ns;           /* when that was last counted */
	bool     lost_some;         /* in this batch */
	uint64_t n_lost, n_lost_wakings, n_wakings_ever, n_paused, paused_ns;
};

/* Opens the events where they are allowed. Events that are not allowed are no error: then `reason` says why. */
void sf_perf_sleeps_open(struct sf_perf *perf);
void sf_perf_sleeps_close(struct sf_perf_sleeps *sleeps);
/* Attaches the events to the processes of perf->events. */
void sf_perf_sleeps_attach(struct sf_perf *perf, const int32_t *pids, size_t n);
void sf_perf_sleeps_enable(struct sf_perf *perf);

/* A batch: its begin (bytes in it); each record of its rings in the order of time; its end. */
uint64_t sf_perf_sleeps_begin(struct sf_perf_sleeps *sleeps, uint64_t began_ns);
void sf_perf_sleeps_switch(struct sf_perf *perf, uint32_t ring, const struct sf_perf_record *record, uint64_t now_ns);
void sf_perf_sleeps_waking(struct sf_perf *perf, const struct sf_perf_record *record);
void sf_perf_sleeps_end(struct sf_perf *perf, uint64_t now_ns);

/*
 * Whether this thread's sleeps are recorded, so that no look is needed. Adds the time of one that goes on to its sample
 * then. False also where the kernel's copy was too short for a sleep that goes on.
 */
bool sf_perf_sleeps_look(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns);
/* A look has found the thread asleep, and it has a sample of that. */
void sf_perf_sleeps_looked(struct sf_perf *perf, struct sf_thread *thread);

/* Drops the sleeps of which records were read: threads are looked at until more records come. */
void sf_perf_sleeps_forget(struct sf_perf *perf);
/* The same of one thread. The next look finds what the thread does, and where it sleeps. */
void sf_perf_sleeps_forget_thread(struct sf_thread *thread);

/* Pauses, or goes on, as the cost of the batch says. */
void sf_perf_sleeps_limit(struct sf_perf *perf, uint64_t now_ns);

#endif
