/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording in memory, as every view and export uses it: tables of plain structs that refer
 * to each other by number. Loaded from the .sfr file, never written back.
 *
 * Numbers are indexes; index 0 of strings, functions, frames and nodes is "none" (the empty
 * string; the root node), so real ones start at 1.
 *
 * A sample has a time, a thread, a stack, a state and a weight. The weight is the CPU time (cpu_ns), the elapsed time
 * (wall_ns) and the number of ticks for which the sample stands. Except for rounding, cpu_ns <= wall_ns. See
 * docs/recording.md. A recording may have a measure, too: an event. Then the weight is also the amount of it. The CPU
 * time and the amount of each loss are a sample, too, which says so (`unseen`): weights add up to what the kernel
 * counted.
 */
#ifndef SF_RECORDING_PROFILE_PROFILE_H
#define SF_RECORDING_PROFILE_PROFILE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"

struct sf_profile_function {
	uint32_t name;     /* string: demangled; "[unknown in libfoo.so]" style when nothing is
			    * known */
	uint32_t linkage;  /* string */
	uint32_t file;     /* string: source file, or 0 */
	uint32_t module;   /* index of modules + 1; 0: none */
	uint32_t kind;     /* enum sf_frame_kind. No padding: functions are interned */
};

/* A function at a location: inlined calls are frames of their own. */
struct sf_profile_frame {
	uint32_t function;
	uint32_t line;     /* 0: unknown */
	uint64_t address;  /* in the module's file, inside the call for callers; 0 for waits and
			    * cuts */
	bool     inlined;  /* into its parent frame */
	bool     approximate; /* calls that are inlined here may be missing */
	uint8_t  via;      /* enum sf_via: how the frame was found */
	uint8_t  kind;     /* enum sf_frame_kind: of this frame; its function may be found in
			    * several */
};

/*
 * A stack is a node: its innermost frame, and the node of its caller. A parent's number is smaller.
 */
struct sf_profile_node {
	uint32_t parent;   /* 0: the root */
	uint32_t frame;
};

struct sf_profile_module {
	uint32_t path;     /* strings */
	uint32_t build_id; /* hex */
};

struct sf_profile_thread {
	uint32_t process;         /* number of its process, from 1; 0: of no known thread */
	int32_t  pid, tid;
	uint32_t name;            /* string: its last name */
	uint32_t process_name;    /* string */
	uint64_t start_ns, end_ns;/* when it was first and last seen, from the recording's start */
	uint64_t cpu_counted_ns;  /* by the kernel, while it was watched */
};

struct sf_profile_label {  /* strings */
	uint32_t key, value;
};

struct sf_profile_note {
	int32_t  pid;             /* of the process that it is about, or 0 */
	uint32_t text;            /* string */
};

struct sf_profile_sample {
	uint64_t time_ns;   /* from the recording's start */
	uint32_t thread;    /* index */
	uint32_t label;     /* index of labels + 1; 0: it has none */
	uint32_t second_label; /* of another one */
	uint32_t node;      /* the innermost frame; 0: nothing is known of the stack */
	uint64_t cpu_ns, wall_ns;
	uint64_t amount;    /* of the profile's measure */
	uint32_t ticks;
	uint8_t  state;     /* enum sf_state */
	uint8_t  end;       /* enum sf_end */
	uint8_t  unheld;    /* 1: the thread was never interrupted for it */
	int16_t  syscall;   /* or SF_SYSCALL_... */
	bool     unseen;    /* no sample was taken: it is CPU time, or an amount, of a loss, and has no ticks */
};

/* The one frame of samples that are `unseen`; and the name of the thread of those of no known thread. */
#define SF_UNSEEN_NAME "[not seen]"

/* Where so much of the CPU time was not seen that shares are in doubt, this is said behind a percentage. */
#define SF_UNSEEN_HINT                                                                             \
	"of the CPU time is in no sample: it is the row " SF_UNSEEN_NAME ". Whose time it is is known, and not in which functions."

/*
 * The advice behind the hint, from the CPU time of the losses by their causes and of all of them. More samples show no more of
 * 32-bit code, and of threads that block the signal; where samples are too many, more are lost.
 */
static inline const char *sf_unseen_advice(const uint64_t by[SF_N_LOSSES], uint64_t lost)
{
	if (2 * by[SF_LOSS_NARROW] > lost)
		return "";
	if (2 * by[SF_LOSS_DEAF] > lost)
		return " Threads block the signal that samples them (deaf): an engine that watches from outside sees them.";
	if (2 * by[SF_LOSS_REST] > lost)
		return " Most of it is what threads used before their first samples or after their last ones (rest): a higher --rate sees more, and a longer recording.";
	if (2 * by[SF_LOSS_RING_FULL] > lost)
		return " Most of it is samples for which there was no room (ring-full), as of many deep stacks: a lower --rate takes less.";
	return " A higher --rate or --max-cost, or another engine, sees more.";
}
#define SF_UNSEEN_PERCENT 3
#define SF_UNSEEN_NS 20000000
/* The CPU time of which shares are taken: the kernel's count, unless that is not there yet for all threads. */
static inline uint64_t sf_cpu_whole(uint64_t seen_ns, uint64_t unseen_ns, uint64_t counted_ns)
{
	return counted_ns > seen_ns + unseen_ns ? counted_ns : seen_ns + unseen_ns;
}
static inline bool sf_unseen_is_notable(uint64_t unseen_ns, uint64_t whole_ns)
{
	return unseen_ns >= SF_UNSEEN_NS && unseen_ns * 100 >= whole_ns * SF_UNSEEN_PERCENT;
}

struct sf_profile_loss {
	uint32_t thread;    /* index, or UINT32_MAX: of no known thread */
	uint8_t  cause;     /* enum sf_loss */
	uint32_t ticks;
	uint64_t cpu_ns, wall_ns, amount;
};

/* A measure is added up over samples, beside time or in its place. */
struct sf_profile_measure {
	char    *name, *unit;     /* NULL: the recording has none */
	uint64_t counted;         /* how much there was in all, where that is known: */
	bool     is_counted;
	bool     is_all;          /* samples stand for amounts only, and not for time */
};

struct sf_profile_hold {   /* a histogram: holds of up to this long, longer than the one before */
	uint64_t up_to_ns;
	uint64_t count;
};

struct sf_profile {
	/* about the recording */
	char    *command;         /* what was watched: a command line or "pid 4242 (python3)" */
	char    *engine;
	char    *host, *version;
	uint64_t start_unix_ns;   /* wall clock time of the start */
	uint64_t duration_ns;
	uint64_t rate_mhz, blocked_rate_mhz; /* wanted ticks per second, in thousandths */
	bool     complete;        /* false: stillframe was killed, or still records; frames may
				   * have no names */
	bool     being_written;   /* not complete, and its stillframe lives */
	bool     by_label;        /* its samples were chosen by a label: the kernel counts no time by label */
	bool     bytes_missing;   /* the file is cut short, and a note says so: these are the rows that it still has */

	struct sf_profile_measure measure;

	char   **strings;         uint32_t n_strings;
	struct sf_profile_function *functions; uint32_t n_functions;
	struct sf_profile_frame    *frames;    uint32_t n_frames;
	struct sf_profile_node     *nodes;     uint32_t n_nodes;
	struct sf_profile_module   *modules;   uint32_t n_modules;
	struct sf_profile_thread   *threads;   uint32_t n_threads;
	struct sf_profile_label    *labels;    uint32_t n_labels;
	struct sf_profile_note     *notes;     uint32_t n_notes;
	struct sf_profile_sample   *samples;   size_t   n_samples;  /* by time */
	struct sf_profile_loss     *losses;    size_t   n_losses;
	struct sf_profile_hold     *holds;     size_t   n_holds;
};

/* Which samples a view is about, and what they weigh. Zero means everything, by wall clock. */
enum sf_clock {
	SF_CLOCK_WALL,    /* wall_ns of every sample */
	SF_CLOCK_CPU,     /* cpu_ns */
	SF_CLOCK_OFFCPU,  /* wall_ns - cpu_ns: blocked or waiting for a CPU */
	SF_CLOCK_EVENT,   /* amount, of the recording's measure */
};

/* Their words, in the order of enum sf_clock, NULL at the end. */
extern const char *const sf_clock_words[];
static inline const char *sf_clock_word(enum sf_clock clock)
{
	return sf_clock_words[clock];
}

struct sf_filter {
	enum sf_clock clock;
	const char *threads;      /* POSIX extended regex on thread names, or NULL */
	const char *label;        /* KEY or KEY=VALUE, as it is; or NULL */
};

/*
 * Names functions of a recording that was cut short: `name` is called for each module with
 * addresses that have no name, and calls sf_late_names_put for those that it can name. Addresses
 * are sorted, and as they must be looked up. False: no memory. The texts live during the call, and
 * path and build_id (hex) come from the recording, whoever made it.
 */
struct sf_late_names;
struct sf_location; /* recording.h */
struct sf_profile_namer {
	bool (*name)(struct sf_late_names *names, const char *path, const char *build_id,
		     const uint64_t *addresses, size_t n, void *arg);
	void *arg;
};

/* The functions at addresses[index], innermost first. False: no memory. */
bool sf_late_names_put(struct sf_late_names *names, size_t index,
		       const struct sf_location *functions, size_t n);
/* Something about the names that the user should read; the same again is kept once. False: no memory. */
bool sf_late_names_note(struct sf_late_names *names, const char *text);

struct sf_load_options {
	struct sf_profile_namer namer; /* without a function: what has no name gets none */
	bool split_kinds;              /* managed functions are one for each kind of frame: "name [c2]", "name [inlined]" */
};

/*
 * Reads the recording at `path`. Everything in it is checked: numbers out of range, loops among
 * stacks and text that is not UTF-8 are an error that says which, never a crash. All times
 * together stay below 2^63, so sums of weights need no check. A recording that is still being
 * written is seen as it was at its last write. One that is not complete and not being written is named on
 * the way, in the profile only: the file is never changed. `options` NULL: none.
 */
bool sf_profile_load(const char *path, const struct sf_load_options *options, struct sf_profile **ret,
		     struct sf_error *err);
void sf_profile_destroy(struct sf_profile *profile); /* takes NULL */

/*
 * Keeps only the threads that match filter->threads, and only the samples with filter->label. Samples and
 * losses of other threads are dropped, and losses of no known thread. The label of a lost tick is
 * unknown, and so is the CPU time that the kernel counted for a label. With a label there are
 * therefore no losses and no counted times.
 */
bool sf_profile_filter(struct sf_profile *profile, const struct sf_filter *filter,
		       struct sf_error *err);

/* Compiles --threads, an extended regular expression. The caller calls regfree after success. */
bool sf_threads_regex(const char *threads, regex_t *ret, struct sf_error *err);

/* Why a recording has no end, as a sentence for people; NULL: it has one. */
const char *sf_profile_cut(const struct sf_profile *profile);

/* The weight of a sample by a clock, in nanoseconds, or in units of the measure. */
uint64_t sf_profile_weight(const struct sf_profile_sample *sample, enum sf_clock clock);

/*
 * A thread that was awake was not on a CPU all of the elapsed time that its sample stands for: the rest it waited for
 * one. *waiting_ret becomes that rest, as runnable. False: there is none, and *on_cpu_ret is the sample.
 */
bool sf_profile_split_wait(const struct sf_profile_sample *sample, struct sf_profile_sample *on_cpu_ret,
			   struct sf_profile_sample *waiting_ret);

/* Whether the recording has samples by this clock at all. If not, err says which it has. */
bool sf_profile_has_clock(const struct sf_profile *profile, const char *path, enum sf_clock clock, struct sf_error *err);

/* Shorthands; never NULL. */
const char *sf_profile_string(const struct sf_profile *profile, uint32_t string);
const char *sf_profile_frame_name(const struct sf_profile *profile, uint32_t frame);

#endif
