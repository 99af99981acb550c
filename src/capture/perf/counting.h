/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of an event (--event), in the place of those of the CPU clock: how many events each stands for, and the sum:
 *
 *   events of samples + lost events = events that the kernel counted for what is watched
 *
 * A sample stands for as many events as the kernel was asked to count for one (the pace), and for those of the thread's
 * samples that were passed over to keep the cost below its limit (budget.h). The kernel's count is known at the end.
 * Lost are the events of records that found no room in a ring, and those after the last sample of each thread on each
 * CPU, where the kernel counts them apart. Where others are sampled, too, as the idle task, a part of the lost ones is
 * theirs.
 *
 * The pace: rare events have a sample each. Where so many come that samples would be too many, there is one for each N-th,
 * and N becomes smaller again when they are rare again. Between two changes N is the same for all threads, so a sample
 * stands for exactly N events. A change costs some system calls for each thread and CPU. So the number falls only after a
 * while, which is longer each time.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PERF_COUNTING_H
#define SF_CAPTURE_PERF_COUNTING_H

#include "capture/perf/event_names.h"
#include "capture/perf/record.h"
#include "capture/sink.h"

struct sf_perf;
struct sf_thread;

struct sf_perf_pace {
	uint64_t least;          /* events for one sample, at the least */
	uint64_t most;           /* samples in a second */
	uint64_t n, since_ns;    /* samples since the last change, or look */
	uint64_t pause_ns;       /* before the number falls */
};

struct sf_perf_counting {
	bool     on;
	struct sf_perf_named_event event;
	struct sf_perf_pace pace;
	uint64_t n, n_before;     /* samples and lost ones: all, and at the last look at the pace */
	uint64_t seen, others;    /* events of samples of what is watched, with those that were lost later; and of the rest */
	uint64_t no_room;         /* events of records that found no room */
	uint64_t n_no_room;
	uint64_t counted;         /* at the end: those of what is watched */
};

/* Prepares the engine's events, before they are opened. False: this machine does not count the event, or not for this user. */
bool sf_perf_counting_open(struct sf_perf *perf, struct sf_error *err);

/* Before the first sample. */
void sf_perf_counting_begin(struct sf_perf *perf, uint64_t now_ns);

/* A sample of a batch, in the order of time (`thread` NULL: of none that is known); and that records found no room. */
void sf_perf_counting_sample(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record);
void sf_perf_counting_lost(struct sf_perf *perf, const struct sf_perf_record *record);

/* After a batch: how many events there are to be for a sample from now on. The caller sees to it. */
uint64_t sf_perf_counting_pace(struct sf_perf *perf, uint64_t now_ns);

/* After the last sample: reads the counts, and counts what was lost. */
void sf_perf_counting_end(struct sf_perf *perf);

/* Tells the sink of the measure; `over`: with its count. */
bool sf_perf_counting_report(const struct sf_perf *perf, const struct sf_sink *sink, bool over, struct sf_error *err);

/* --- the pace --- */

void sf_perf_pace_begin(struct sf_perf_pace *pace, uint64_t least, uint64_t most, uint64_t now_ns);

/* The number of events for one sample from now on, where it was `each` and n samples came since the last call. */
uint64_t sf_perf_pace_look(struct sf_perf_pace *pace, uint64_t each, uint64_t n, uint64_t now_ns);

#endif
