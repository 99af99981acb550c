/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a recording: one SQLite file, documented in docs/recording.md.
 *
 * A writer interns repeated items (modules, addresses, stacks), collects data in memory, and writes it once a second, and
 * sooner in the first two seconds. A kill -9 therefore loses at most the last second. Names are added at the end (before
 * sf_recording_finish), or later when an unfinished recording is reopened.
 *
 * A write that fails (disk full) loses nothing by itself: its data is kept in memory, and the next write
 * tries again. The file's existing content stays whole. Texts may be any bytes: control
 * characters and invalid UTF-8 are replaced.
 *
 * One thread at a time. Nothing here is signal-safe. Numbers handed out start at 1.
 */
#ifndef SF_RECORDING_RECORDING_H
#define SF_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/location.h"
#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"

struct sf_recording;

struct sf_recording_about {
	const char *command, *engine, *host, *version;
	uint64_t start_unix_ns, start_monotonic_ns; /* all later times are CLOCK_MONOTONIC */
	uint64_t rate_mhz, blocked_rate_mhz;
	const struct sf_arch *arch;
};

/*
 * Creates the file (an existing one is replaced only if it is a recording or empty, and nobody
 * is writing to it). The file stays when the recording is abandoned.
 */
bool sf_recording_create(const char *path, const struct sf_recording_about *about,
			 struct sf_recording **ret, struct sf_error *err);

/*
 * The recording begins now: times count from here. Before anything with a time is recorded. Without it a recording
 * begins where it was created, and what is prepared between is part of its duration.
 */
void sf_recording_begin(struct sf_recording *recording, uint64_t unix_ns, uint64_t monotonic_ns);

/* The description of an image that the session gives when the image first occurs. */
struct sf_recording_module {
	uint32_t number;          /* the image's: unique in the session, from 1 */
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size;
	const char *note;         /* what is missing, or "" */
};

struct sf_recording_sample {
	uint64_t time_ns;         /* CLOCK_MONOTONIC */
	uint32_t thread;          /* from sf_recording_thread */
	uint32_t stack;           /* from sf_recording_stack; 0: nothing is known */
	uint32_t label;           /* from sf_recording_label; 0: it has none */
	uint32_t second_label;    /* another one; 0: it has none */
	uint64_t cpu_ns, wall_ns;
	uint64_t amount;          /* of the measure; 0: none */
	uint32_t ticks;
	uint8_t  state, end, unheld;
	int32_t  syscall;
};

/* The ticks, times and events of a loss. */
struct sf_lost {
	uint64_t ticks, cpu_ns, wall_ns, amount;
};

/*
 * A pid is used again when its process has ended. Before sf_recording_process(): the process that has this pid started then
 * (sf_process_program(); 0: unknown). If another one had it, which has ended or started at another time, what is recorded of the
 * pid from now on is of a new process.
 */
bool sf_recording_process_met(struct sf_recording *recording, int32_t pid, uint64_t started, struct sf_error *err);
bool sf_recording_process_ended(struct sf_recording *recording, int32_t pid, struct sf_error *err);

/*
 * The same pid again replaces its name and command line: an exec. If both are empty, it had ended when they were read,
 * and they stay; so does the command line if that alone is empty and the name is the same. A process without a name has
 * that of its first thread.
 */
bool sf_recording_process(struct sf_recording *recording, int32_t pid, int32_t parent,
			  const char *name, const char *command_line, uint64_t time_ns,
			  struct sf_error *err);
/*
 * Finds or adds a thread, and returns its number. Until the thread has ended, its tid gives the same
 * number; afterwards the tid is a new thread. The exception is a process's first thread (its tid is the
 * pid): it keeps its number when it occurs again, for instance after an exec. Add the thread's process
 * first; an unknown process is added without a name.
 */
bool sf_recording_thread(struct sf_recording *recording, int32_t pid, int32_t tid,
			 const char *name, uint64_t time_ns, uint32_t *ret, struct sf_error *err);
bool sf_recording_thread_name(struct sf_recording *recording, uint32_t thread, const char *name,
			      struct sf_error *err);
bool sf_recording_thread_end(struct sf_recording *recording, uint32_t thread, uint64_t time_ns,
			     uint64_t cpu_counted_ns, struct sf_error *err);
/* A module must be there before the first stack through it. The same number again is ignored. */
bool sf_recording_module(struct sf_recording *recording, const struct sf_recording_module *module,
			 struct sf_error *err);

/*
 * A place in code that a virtual machine made, by what is there: its functions, innermost first. A managed frame of a
 * stack (sf_kind_is_managed) has the number that comes back in its `address`.
 */
bool sf_recording_place(struct sf_recording *recording, const struct sf_location *names,
			size_t n, uint32_t *ret, struct sf_error *err);

/*
 * A place whose functions come later: frames may have its number at once. It is described once, by functions for which
 * *ret is a better number from then on. Frames of a place that is never described say so at the end (names.c).
 */
bool sf_recording_pending(struct sf_recording *recording, uint32_t *ret, struct sf_error *err);
bool sf_recording_describe_pending(struct sf_recording *recording, uint32_t place,
			       const struct sf_location *names, size_t n, uint32_t *ret,
			       struct sf_error *err);

/*
 * The number of a stack, interned. `wait`: a leaf such as "[futex]" to put on top, or NULL. When
 * trace->end is not ROOT, an outermost frame "[cut: ...]" is added below it. stacks[i] is the number of the stack
 * of the i + 1 outermost frames: the caller gives the first `n_known`, from a trace with the same end, and
 * the function fills in the others. `stacks` may be NULL where n_known is 0.
 */
bool sf_recording_stack(struct sf_recording *recording, const struct sf_trace *trace,
			const char *wait, uint32_t n_known, uint32_t *stacks, uint32_t *ret,
			struct sf_error *err);

/* The number of a label, interned. */
bool sf_recording_label(struct sf_recording *recording, const char *key, const char *value,
			uint32_t *ret, struct sf_error *err);
/*
 * Something that the user should read; the same again of the same process is kept once. pid 0: of
 * none.
 */
bool sf_recording_note(struct sf_recording *recording, int32_t pid, const char *text,
		       struct sf_error *err);

/* Where the next sample will be, until it is in the file. */
struct sf_recording_row {
	uint64_t n_saves;    /* as many as there were, plus 1; 0: there is no such sample */
	size_t   index;
};
struct sf_recording_row sf_recording_next_row(const struct sf_recording *recording);

/*
 * Before `sample`, which is on a CPU, is written: gives half of its CPU time to the sample of its thread before, at `row`. Nothing
 * where that one is in the file already.
 *
 * A sample comes with the CPU time since the one before, at a moment that does not depend on what the thread does. But where a
 * thread works in turns, each of which has a sample at the most, a sample late in a turn would have the whole turn, and one
 * early in it the end of an earlier one: what is done first would have too little.
 */
void sf_recording_give_half(struct sf_recording *recording, const struct sf_recording_row *row, struct sf_recording_sample *sample);

/* Writes when the last write is a second before the sample's time, or when much has gathered. */
bool sf_recording_sample(struct sf_recording *recording, const struct sf_recording_sample *sample,
			 struct sf_error *err);
/* thread 0: of no known thread. Kept as sums by thread and cause. */
void sf_recording_loss(struct sf_recording *recording, uint32_t thread, enum sf_loss cause, const struct sf_lost *lost);

/*
 * The measure of all amounts, before the first of them: the name of what is added up beside time, and its unit. Once.
 * At the end sf_recording_counted() says how much there was in all.
 */
bool sf_recording_measure(struct sf_recording *recording, const char *name, const char *unit, struct sf_error *err);
void sf_recording_counted(struct sf_recording *recording, uint64_t amount);
/*
 * From now on the innermost frames of a sample are left out that are of managed functions whose names begin with
 * `start`, which lives as long as the recording, and the native ones behind them: up to the next managed function. A
 * sample whose innermost place is pending is written when that is described, or at the end.
 */
void sf_recording_leave_out(struct sf_recording *recording, const char *start);

/* Adds the duration of a hold of a thread to a histogram with 8 buckets to an octave. */
void sf_recording_hold(struct sf_recording *recording, uint64_t hold_ns);

/*
 * Writes now if the last write is a second ago, or half of the time that the recording had taken by
 * then: call about every 100 ms. A reader that is in the way delays it by as much and is no error.
 */
bool sf_recording_tick(struct sf_recording *recording, uint64_t now_ns, struct sf_error *err);

/*
 * The addresses of a module that still have no names, sorted, from malloc, the caller's to free.
 * They are as they must be looked up (pc - 1 for return addresses). Each frame's is handed out once.
 */
bool sf_recording_unnamed(struct sf_recording *recording, uint32_t module, uint64_t **ret,
			  size_t *n_ret, struct sf_error *err);
/* The functions at one such address, innermost first. Frames that have names already keep them. */
bool sf_recording_names(struct sf_recording *recording, uint32_t module, uint64_t address,
			const struct sf_location *names, size_t n, struct sf_error *err);

/* How many rows of names wait to be written to the file. Beyond some 50,000 sf_recording_names() writes them. */
size_t sf_recording_waiting_names(const struct sf_recording *recording);

/* Totals, for the summary; kept as the recording is written. */
struct sf_recording_totals {
	uint64_t samples, ticks, losses; /* ticks = sample ticks + losses */
	uint64_t losses_by[SF_N_LOSSES];
	uint64_t ends_by[SF_N_ENDS];     /* sample ticks by how their walk ended */
	uint64_t unheld;                 /* sample ticks taken without interrupting the thread */
	uint64_t cpu_seen_ns, cpu_lost_ns, cpu_counted_ns;
	uint64_t cpu_lost_by[SF_N_LOSSES];
	char     measure[64], unit[16];  /* its name and unit; "": there is none */
	uint64_t amount_seen, amount_lost, amount_counted;
	bool     has_times;              /* some sample stands for time */
	uint64_t managed_ns;             /* CPU time of samples whose innermost frame is managed code, ... */
	uint64_t approximate_ns;         /* ... and of these, of those that may lack inlined calls there */
	uint64_t holds, hold_p50_ns, hold_p99_ns, hold_max_ns;
	uint32_t n_threads, n_processes;
	uint64_t unsaved;                /* of the samples: not in the file so far */
};
void sf_recording_totals(const struct sf_recording *recording, struct sf_recording_totals *ret);

/* The recording does not end in order: sf_recording_finish() leaves it marked as cut short. */
void sf_recording_cut_short(struct sf_recording *recording);
/*
 * Nothing but names is added from now on. The samples are written at once: looking up names may take seconds, in which
 * stillframe may be killed. The recording is not complete yet. Where writing fails, sf_recording_finish() tries again.
 */
void sf_recording_end(struct sf_recording *recording, uint64_t end_ns);
/*
 * Marks the recording complete and closes it; the struct is gone in any case. `end_ns` 0: it
 * lasted until the last thing that was recorded.
 */
bool sf_recording_finish(struct sf_recording *recording, uint64_t end_ns, struct sf_error *err);
/*
 * Closes without finishing (the target of an error path), writing what can still be written. Takes
 * NULL.
 */
void sf_recording_abandon(struct sf_recording *recording);

#endif
