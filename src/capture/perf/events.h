/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of the threads that are watched: one for each thread and CPU, and one ring for each CPU.
 *
 * A thread that starts inherits its parent's events, so it is sampled from its first instruction on. A descriptor is only
 * needed for threads that are there at the start.
 *
 * The kernel fixes the size of the stack copy when an event is opened. A record takes that room in the ring, whatever
 * of it is used. Events are opened with copies so long that a ring holds the samples of half a second. Where copies
 * turn out too short, sf_perf_events_resize() opens events with longer ones on all threads, and closes the old ones.
 *
 * The kernel keeps to the period of a clock: to change it would start the present one anew. So that a program cannot be
 * in step with its samples, the period of each CPU is drawn at random: it differs from the one that is set by a
 * sixty-fourth to a thirty-second.
 */
#ifndef SF_CAPTURE_PERF_EVENTS_H
#define SF_CAPTURE_PERF_EVENTS_H

#include "base/error.h"
#include "base/vec.h"
#include "capture/perf/rings.h"
#include "os/perf_events.h"

#define SF_PERF_MAX_CPUS 1024

/*
 * Whether a copy of a stack is as long as the kernel makes them. The longest have some hundred bytes less than the limit,
 * where the rest of the record needs them. All others have half of it at the most.
 */
static inline bool sf_perf_stack_is_longest(uint32_t bytes)
{
	return bytes > SF_PERF_MAX_STACK / 4 * 3;
}

struct sf_perf_fds { /* an SF_VEC */
	int   *items;
	size_t n, capacity;
};

struct sf_perf_events {
	enum sf_perf_kind kind;
	uint64_t period_ns;    /* of a clock, on average; 0: none */
	uint32_t tracepoint;   /* of SF_PERF_WAKINGS and SF_PERF_SIGNALS ... */
	uint32_t second_tracepoint; /* ... and another one, into the same rings; 0: none */
	const char *filter;    /* of the tracepoint's records; NULL: all */
	uint32_t type;         /* of SF_PERF_COUNTED: enum perf_type_id ... */
	uint64_t config;       /* ... and which of these */
	uint64_t each;         /* so many of it for a sample */
	uint64_t renewed_ns;   /* when the events that are open now took the place of others; 0: they are the first. Before: */
	uint64_t each_before;
	bool     on_exec;      /* they count from the exec of their thread on */
	bool     waits;        /* events that are opened now count only when they take the place of others */
	bool     all;          /* one event for each CPU samples whatever runs there, in place of one for each thread and CPU */
	int      cgroup;       /* with `all`: of threads in this control group only, whose folder this is; 0: not so */
	bool     children, kernel;
	bool     enabled;      /* the events count, also those that are opened later */
	uint32_t stack_bytes;
	bool     user_chain;   /* samples have what the kernel finds by the frame pointers: sf_perf_events_add_chain */
	int      cpus[SF_PERF_MAX_CPUS];
	uint64_t periods_ns[SF_PERF_MAX_CPUS]; /* of a clock, on each of them */
	int      owners[SF_PERF_MAX_CPUS];  /* of the rings */
	struct sf_perf_ring rings[SF_PERF_MAX_CPUS];
	size_t   n_cpus, ring_size;
	uint64_t began_ns;                  /* the batch has the records until then; ... */
	uint64_t read_ns;                   /* ... the ends of the rings were read before this */
	struct sf_perf_fds fds;             /* of the threads' events */
	struct sf_perf_fds meters;          /* of SF_PERF_COUNTED: they count the event. Only where CPUs come they are replaced */
	uint64_t counted_before;            /* by meters that are closed */
};

/* Opens the rings, for events of the kind that is set. Fails with the reason and with what would help. */
bool sf_perf_events_open(struct sf_perf_events *events, uint64_t period_ns, struct sf_error *err);
void sf_perf_events_close(struct sf_perf_events *events);
/* The rings only: the part of sf_perf_events_close() in rings.c. */
void sf_perf_events_close_rings(struct sf_perf_events *events);

/*
 * Opens the events of all threads of these processes, until no new thread appears; or, with `all`, those of the CPUs.
 * False: none could be opened. Threads that end meanwhile are no error.
 */
bool sf_perf_events_attach(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err);

/* From now on there are samples. Threads that were started meanwhile have their parents' events. */
void sf_perf_events_enable(struct sf_perf_events *events);
/* Until they are enabled again. */
void sf_perf_events_disable(struct sf_perf_events *events);

/*
 * Begins a batch in all rings: it has their records until now, began_ns. The ends of the rings are read one after the other,
 * and stillframe may wait for a CPU in between, so what is written meanwhile is in the next batch. Bytes in the rings.
 */
uint64_t sf_perf_events_begin(struct sf_perf_events *events, uint64_t began_ns);
/* The next record of the batch in the ring of the i-th CPU, as sf_perf_ring_peek(), and its time. */
const struct perf_event_header *sf_perf_events_peek(struct sf_perf_events *events, size_t i, uint64_t *time_ret);
void sf_perf_events_end(struct sf_perf_events *events);
/* Whether a ring is half full: then the kernel wakes the thread that polls it. */
bool sf_perf_events_are_half_full(const struct sf_perf_events *events);

/* Copies of at least `bytes`, as far as the kernel takes them, by events that are opened from now on. */
void sf_perf_events_make_room(struct sf_perf_events *events, uint32_t bytes);

/* Longer copies from now on, of at least `bytes` as far as the kernel takes them; or shorter ones of `bytes`. */
bool sf_perf_events_resize(struct sf_perf_events *events, uint32_t bytes, const int32_t *pids, size_t n, struct sf_error *err);

/* From now on samples have what the kernel finds in user mode by the frame pointers, which takes it longer for each sample. */
bool sf_perf_events_add_chain(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err);

/* Samples at a shorter period from now on, also of threads that start later. */
bool sf_perf_events_refine(struct sf_perf_events *events, uint64_t period_ns, const int32_t *pids, size_t n, struct sf_error *err);
/* Sets the period of events that are opened from now on, and makes their copies so short that a ring holds many: in rings.c. */
void sf_perf_events_set_period(struct sf_perf_events *events, uint64_t period_ns);

/*
 * Of SF_PERF_COUNTED: so many of the event for a sample from now on. What there is of it while the new events take the
 * place of the old ones is counted, and in no sample.
 */
bool sf_perf_events_set_each(struct sf_perf_events *events, uint64_t each, const int32_t *pids, size_t n, struct sf_error *err);

/* Of SF_PERF_COUNTED: how many there were of the event while they were enabled. */
uint64_t sf_perf_events_counted(const struct sf_perf_events *events);

/*
 * Opens the events of all threads anew, on the CPUs that are online now: also on those that were not there at the start. Rings
 * that were never opened stay closed. False: a new CPU has no ring, the meters are not complete, or the events are as they were.
 */
bool sf_perf_events_follow_cpus(struct sf_perf_events *events, const int32_t *pids, size_t n, struct sf_error *err);
/* Rings for the CPUs that are online and have none: the part of the above in rings.c. */
bool sf_perf_events_add_rings(struct sf_perf_events *events, struct sf_error *err);

/* From now on one event for each CPU samples whatever runs there. False: it is as it was. */
bool sf_perf_events_widen(struct sf_perf_events *events, struct sf_error *err);

#endif
