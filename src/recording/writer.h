/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of struct sf_recording. Private to src/recording.
 *
 * All data is first collected in memory, and written in short bursts (save.c): the first one after a tenth
 * of a second, each next one later after the one before, up to a second. The file changes for milliseconds
 * at a time only. Each burst is one step (commit.h), also if the
 * writer is killed. A full disk does no harm: a burst that fails is rolled back, and its data is
 * written with the next burst.
 */
#ifndef SF_RECORDING_WRITER_H
#define SF_RECORDING_WRITER_H

#include <sqlite3.h>

#include "base/histogram.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/recording.h"
#include "recording/store/schema.h"

/* The statements of save.c and names.c, prepared once. */
enum sf_statement {
	SF_SAVE_PROCESS,
	SF_SAVE_THREAD,
	SF_SAVE_MODULE,
	SF_SAVE_FRAME,
	SF_SAVE_FUNCTION,
	SF_SAVE_FRAME_FUNCTION,
	SF_SAVE_STACK,
	SF_SAVE_LABEL,
	SF_SAVE_NOTE,
	SF_SAVE_SAMPLE,
	SF_SAVE_LOSS,
	SF_SAVE_HOLD,
	SF_SAVE_MEASURE,
	SF_SAVE_SESSION,
	SF_SAVE_BEGIN,
	SF_SAVE_COMMIT,
	SF_N_STATEMENTS,
};

/* The tables whose rows are interned: save.c. */
enum sf_saved { SF_SAVED_FRAMES, SF_SAVED_STACKS, SF_SAVED_FUNCTIONS, SF_SAVED_LABELS, SF_SAVED_NOTES, SF_N_SAVED };

struct sf_process_row {
	int32_t pid, parent;
	uint32_t name, command_line; /* strings */
	uint64_t start_ns;
	bool has_threads, dirty;
};

/* The process that has a pid now. */
struct sf_pid_now {
	uint32_t process;            /* index + 1; 0: none that is recorded */
	uint64_t started;            /* sf_recording_process_met(); 0: unknown */
	bool     ended;
};

struct sf_thread_row {
	uint32_t process;            /* index + 1 */
	int32_t tid;
	uint32_t name;               /* string */
	uint64_t start_ns, end_ns;
	uint64_t cpu_counted_ns;
	uint64_t cpu_before_ns;      /* of cpu_counted_ns: in programs that it ran before */
	bool ended, dirty;
};

/* The key under which a loss is interned: samples.c. */
struct sf_loss_key {
	uint32_t thread, cause;      /* its number; enum sf_loss */
};

struct sf_loss_row {
	struct sf_lost lost;
	bool dirty;
};

struct sf_module_row {
	uint32_t number;
	uint32_t path, note, build_id_hex; /* strings */
};

/* The key under which a frame is interned. No padding. */
struct sf_frame_key {
	uint64_t address;            /* to look up; of a wait or a cut: the number of its label */
	uint32_t module;
	uint8_t kind, via, exact, zero;
};

struct sf_stack_key {
	uint32_t parent, frame;
};

struct sf_label_key {
	uint32_t key, value; /* strings */
};

struct sf_note_key {
	int32_t pid;
	uint32_t text;       /* string */
};

struct sf_function_key {
	uint32_t name, linkage, file, module;
};

struct sf_frame_function {
	uint32_t frame, seq, function, line;
	bool inlined, approximate;
};

/* A function at a place in managed code. No padding. */
struct sf_managed_function {
	uint32_t function, line;
	uint16_t inlined, approximate;
};

struct sf_waiting_frame {
	uint32_t frame, place;
};

/* A native frame by its place, for names.c. */
struct sf_place {
	uint32_t module, frame;
	uint64_t address;
};

/* The limited quantities. interned.c has the limits, and the effect of exceeding them. */
enum sf_recording_limit {
	SF_LIMIT_FRAMES,
	SF_LIMIT_STACKS,
	SF_LIMIT_TEXT,
	SF_LIMIT_LOSSES,
	SF_N_RECORDING_LIMITS,
};

/*
 * X(name): what is interned. All texts, sanitised; pids; numbers of modules that are in `modules`; a process and the
 * tid of a thread of it; arrays of struct sf_managed_function (sf_recording_place); and the
 * keys above.
 */
#define SF_RECORDING_INTERNS(X)                                                                    \
	X(strings) X(pids) X(module_numbers) X(tids) X(managed) X(frames) X(stacks) X(functions)   \
	X(labels) X(notes) X(loss_keys)

/* Whether a frame has names. Its address is handed out to be looked up once, and what comes back names it once. */
enum sf_named { SF_WITHOUT_NAMES, SF_HANDED_OUT, SF_WITH_NAMES };

struct sf_recording {
	char *path;
	sqlite3 *db;
	sqlite3_stmt *statements[SF_N_STATEMENTS];

	uint64_t start_ns;           /* CLOCK_MONOTONIC */
	uint64_t start_unix_ns;
	uint64_t last_ns;            /* the latest time that was mentioned, from the start */
	uint64_t committed_ns;       /* CLOCK_MONOTONIC, when the last burst was written or tried */
	size_t save_at;              /* so many samples are written before their second is over */
	bool complete;
	bool cut_short;           /* it is written to its end, and is not whole */

#define X(name) struct sf_intern *name;
	SF_RECORDING_INTERNS(X)
#undef X
	uint64_t text_size;          /* of all strings, with what keeping each costs */
	unsigned limits_noted;       /* bits: enum sf_recording_limit */
	SF_VEC(struct sf_pid_now) pids_now; /* by the number of a pid - 1 */
	SF_VEC(uint32_t) live;       /* live[number of a tid - 1] is its thread */
	SF_VEC(uint32_t) pending;    /* by place - 1: names.c */
	uint32_t n_pending;
	SF_VEC(struct sf_waiting_frame) waiting; /* for the descriptions of their places */
	SF_VEC(uint64_t) managed_ns; /* by place - 1: CPU time of samples with it as the innermost frame */

	SF_VEC(struct sf_process_row) processes;
	SF_VEC(struct sf_thread_row) threads;
	SF_VEC(struct sf_module_row) modules;
	SF_VEC(struct sf_loss_row) losses;  /* by number of the key - 1 */
	struct sf_loss_row no_thread[SF_N_LOSSES]; /* by cause: losses of no known thread */

	/* Not in the file yet; samples are written at once, or when their innermost function is known (names.c). */
	SF_VEC(struct sf_recording_sample) samples;
	uint64_t n_saves;            /* how often the samples went to the file: then others are at these places */
	SF_VEC(struct sf_frame_function) frame_functions;
	uint32_t saved[SF_N_SAVED];  /* rows that are in the file */
	size_t saved_modules;

	const char *left_out;        /* what the names of innermost functions that are left out begin with; NULL: none is */

	uint32_t measure, measure_unit;  /* strings; 0: there is none */
	bool is_counted, measure_dirty;  /* totals.amount_counted is known */

	struct sf_histogram holds;
	bool holds_dirty;

	SF_VEC(struct sf_place) places;  /* sorted; of the first `placed_frames` frames */
	uint32_t placed_frames;
	SF_VEC(enum sf_named) named;     /* by frame number - 1, shorter than there are frames */

	struct sf_recording_totals totals;
};

/* From the recording's start. Remembers the latest one. */
static inline uint64_t sf_recording_relative(struct sf_recording *recording, uint64_t time_ns)
{
	uint64_t relative = time_ns > recording->start_ns ? time_ns - recording->start_ns : 0;

	if (relative > recording->last_ns)
		recording->last_ns = relative;
	return relative;
}

/* The number of a text made fit for a recording: UTF-8, no control characters, not too long. */
uint32_t sf_recording_text(struct sf_recording *recording, const char *text);
const char *sf_recording_string(const struct sf_recording *recording, uint32_t number);

bool sf_recording_is_below(enum sf_recording_limit limit, uint64_t used);
/* Whether one more of these is taken in, where `used` are there; else a note says that it is not. */
bool sf_recording_has_room(struct sf_recording *recording, enum sf_recording_limit limit,
			   uint64_t used);

/* Writes everything that is not in the file yet, in one transaction: save.c. */
bool sf_recording_prepare(struct sf_recording *recording, struct sf_error *err);
bool sf_recording_save(struct sf_recording *recording, struct sf_error *err);

/* Samples of one burst: 10 ms of writing, during which the ring fills; and half a megabyte. */
#define SF_BURST_SAMPLES 8192

/* The same; a reader that is in the way only makes it happen later. For the running recording. */
bool sf_recording_save_soon(struct sf_recording *recording, uint64_t now_ns, struct sf_error *err);

/* The number of a function, interned; 0: no memory. interned.c. */
uint32_t sf_recording_function(struct sf_recording *recording, uint32_t module,
			       const struct sf_location *name);

/* Gives the native frames at this place the functions there, if they have none. False: no memory. names.c. */
bool sf_recording_name_place(struct sf_recording *recording, uint32_t module, uint64_t address, const struct sf_location *names,
			     size_t n);
/* Gives a managed frame that is new the functions of its place, now or later: names.c. */
bool sf_recording_name_managed(struct sf_recording *recording, uint32_t frame, uint64_t place);
/* Counts a sample whose innermost frame may be managed; adds up what was counted. */
bool sf_recording_count_managed(struct sf_recording *recording, uint32_t stack, uint64_t cpu_ns);
void sf_recording_total_managed(const struct sf_recording *recording, struct sf_recording_totals *ret);
/* Names the waiting frames whose places are described by now; `last`: the others, too, as not described. */
bool sf_recording_name_waiting(struct sf_recording *recording, bool last, struct sf_error *err);

/* The stack without its innermost frames that are left out. False: that is not known yet, and the sample waits. names.c. */
bool sf_recording_innermost(const struct sf_recording *recording, uint32_t stack, uint32_t *ret);

#endif
