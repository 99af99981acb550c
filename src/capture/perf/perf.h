/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the perf engine, and its parts. For capture/perf/ only; all other code uses sf_engine_perf (engine.h).
 *
 * It begins with the state of the ptrace engine: the processes and threads, the relay to the walking thread, and the samples of
 * sleeping threads are that engine's. Only the samples of running threads come from perf events.
 */
#ifndef SF_CAPTURE_PERF_PERF_H
#define SF_CAPTURE_PERF_PERF_H

#include "capture/perf/budget.h"
#include "capture/perf/counting.h"
#include "capture/perf/events.h"
#include "capture/perf/holds.h"
#include "capture/perf/newcomers.h"
#include "capture/perf/record.h"
#include "capture/perf/signals.h"
#include "capture/perf/sleeps.h"
#include "capture/perf/stacks.h"
#include "capture/perf/renewal.h"
#include "capture/perf/widen.h"
#include "capture/ptrace/ptrace.h"

struct sf_perf {
	struct sf_capture base;       /* first: a struct sf_capture of this engine is one of these */
	struct sf_perf_events events;
	SF_VEC(struct sf_thread *) due; /* the threads of a batch that have samples in it */
	struct sf_perf_budget budget;
	unsigned n_firsts;            /* samples of this batch that are walked beyond the budget */
	struct sf_perf_sleeps sleeps;
	struct sf_perf_signals signals; /* with `all` */
	struct sf_perf_counting counting; /* of an event in place of the CPU clock */
	struct sf_perf_widening widening;
	struct sf_perf_newcomers newcomers; /* where processes are known by their samples */
	struct sf_perf_deep deep;
	bool may_hold;                /* threads may be held, but those of this process. With `all` none is: */
	int32_t own_pid;
	struct sf_perf_kernel_time kernel_time;
	uint64_t n_samples;           /* in all batches: those that were handed on */
	uint64_t n_ends;              /* of threads, by the records of their ends ... */
	uint64_t end_ns;              /* ... and the time of the last one */
	struct {
		uint64_t n_ends, began_ns;
	} last_wait;                  /* at its begin */
	uint64_t n_lost;              /* records that found no room in a ring */
	uint64_t n_throttled;         /* times that the kernel stopped an event, which fired too often */
	uint64_t next_scan_ns;        /* when all processes are looked at again, at the latest */
	uint64_t next_others_ns;      /* when it is asked next whether one ran that was passed over */
	struct sf_perf_holes holes;
	uint32_t stack_wanted;        /* bytes that the copies should have had */
	uint64_t period_wanted;       /* of the events, in the place of a longer one; 0: none */
	bool     chain_wanted;        /* a walk has ended where the kernel's chain would lead on */
	struct sf_perf_online online;
	struct sf_error no_cpu;       /* why a CPU that came online is not sampled; no text: each is */
	struct sf_error no_kernel;    /* why the events do not show what threads do in the kernel; no text: they do */
	struct sf_error no_saved;     /* why there is no source of saved registers; no text: there is one, or it has no use */
};

extern const struct sf_option sf_perf_options[];

/* Fields of the engines perf and bpf (engine.h). */
bool sf_perf_run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err);
void sf_perf_close(struct sf_capture *capture);

/* Samples the sleeping threads that are due, but those whose sleeps are recorded (sleeps.h). */
void sf_perf_look_at_due(struct sf_perf *perf, uint64_t now_ns);

/* Says in the summary what the recording lacks. False: the sink has failed. */
bool sf_perf_notes(const struct sf_perf *perf, const struct sf_sink *sink, struct sf_error *err);

/*
 * Hands a sample of this thread to the relay, with the next share of the thread's time: n_due samples are to come, this
 * one included.
 */
void sf_perf_send_sample(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record);

/*
 * Bytes of the record's stack up to where the thread's first frame was at the last walk that came to it; 0: the copy is
 * shorter, or that is not known, or the thread uses other stacks, too.
 */
uint32_t sf_perf_whole_size(struct sf_thread *thread, const struct sf_perf_record *record);
/* Whether the copy is full, and certainly cut (sf_thread_is_deeper). */
bool sf_perf_is_cut(struct sf_thread *thread, const struct sf_perf_record *record);

/* The same at an event, with a weight of its own. False: the walks are so far behind that the relay has no room. */
bool sf_perf_send_event(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
			const struct sf_weight *weight);

/* A sample of a thread that sleeps, or has slept until time_ns. Its record has registers. */
void sf_perf_send_sleep(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
			const struct sf_perf_wait *wait, uint64_t time_ns, const struct sf_weight *weight);

/* The thread of a record, or NULL. */
struct sf_thread *sf_perf_find_thread(const struct sf_perf *perf, const struct sf_perf_record *record);
/* The same. Where it is new, and `meets`, it is met. NULL: it is not known. */
struct sf_thread *sf_perf_thread_of(struct sf_perf *perf, const struct sf_perf_record *record, bool meets, uint64_t now_ns);

/* Of so many samples of this thread one is due. */
uint32_t sf_perf_times(const struct sf_perf *perf, const struct sf_thread *thread);

/*
 * The first pass over a batch: afterwards perf->due has the threads whose samples are handed on, each with its share of
 * CPU time.
 */
void sf_perf_share_out(struct sf_perf *perf, uint64_t now_ns);

/*
 * Hands the samples that the rings hold, and that the budget has room for, to the relay, each with its share of the CPU
 * time that the kernel has counted for its thread. Returns how many there were.
 */
uint64_t sf_perf_batch(struct sf_perf *perf, uint64_t now_ns);

/* After the batch that began at now_ns, until there is reason for the next one, or until end_ns. Signals end it early. */
void sf_perf_wait_for_batch(struct sf_perf *perf, uint64_t now_ns, uint64_t end_ns);

#endif
