/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of a capture engine: one way to see where the threads of a program are.
 *
 * An engine yields stills, which the caller walks, or finished stacks, or both. It says which, and the caller handles
 * both by one sink (sink.h). Everything else that callers need is a field below: what the engine can do, how many
 * processes it can watch, which options it takes, and its texts for the user. No code outside capture/ depends on which
 * engine it has (tests/frozen/check_engines.py).
 *
 * Threads. All functions are called from one thread, except stop(). An engine may have threads of its own: a sink's
 * functions are called from one of them at a time, and never while a thread of the target is held.
 *
 * Ownership. open() makes a struct sf_capture and close() frees it. Options and their texts belong to the caller and
 * stay valid until close(). The arguments of a sink's functions are valid during the call.
 *
 * Errors. A function that fails fills `err` with the reason and with what to do. One tick that fails is no error:
 * it becomes a loss with a cause (frozen/ends.h).
 *
 * To add an engine: its folder in capture/, its name in SF_ENGINES, capture/meson.build, a test, its row in docs/engines.md.
 */
#ifndef SF_CAPTURE_ENGINE_H
#define SF_CAPTURE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "capture/process_filter.h"
#include "capture/sink.h"

/* The value of an option that only some engines take: the user's text, which the option table has accepted. */
struct sf_setting {
	const char *name;          /* as in the engine's `options`; NULL at the end of a list */
	const char *value;         /* NULL: not given */
};

#define SF_SETTING_EVENT "event"   /* an event is sampled in place of time: by those engines only that have this option */
#define SF_MAX_SETTINGS 24         /* options of all engines */

#define SF_ALL_PROCESSES (-1)      /* in the place of a pid, for check(): every process of the machine */

/* The processes to watch are `pid` and those of `more`, or all. */
struct sf_capture_options {
	int32_t  pid;              /* the only process, or the first one; 0 with `all` */
	const int32_t *more;       /* n_more further processes; NULL: none */
	size_t   n_more;
	bool     all;              /* every process of the machine, also those that start later; or of: */
	const char *cgroup;        /* this control group, and those below it; NULL: not given */
	const struct sf_process_filter *filter; /* of all, or of descendants: only those that fit; NULL: not given. By stills only */
	int32_t  child;            /* `pid` is a child of the caller: its exit status is kept; else 0 */
	uint64_t rate_mhz;         /* ticks of running threads, thousandths of a hertz */
	uint64_t blocked_rate_mhz; /* of blocked ones; 0: they are not sampled */
	uint64_t duration_ns;      /* 0: until the target ends or stop() */
	bool     children;         /* follow the descendants too */
	bool     prompt;           /* what a stack leads to is to be read, too: samples are yielded within some milliseconds */
	bool     no_interrupt;     /* never interrupt a blocked thread */
	bool     complete, not_complete; /* runtimes are asked for complete records (runtime/runtime.h), or never; neither:
				    * those of what was launched, and by an engine that is inside */
	const char *threads;       /* POSIX extended regex on thread names, or NULL */
	uint32_t max_depth;        /* frames; 0: SF_DEFAULT_DEPTH */
	const char *clock;         /* cpu, wall, both: what the rates above were made from; NULL: both */
	const char *program;       /* of the child: what it is about to run, as execvp() takes it; or NULL */
	const struct sf_setting *settings; /* a list, or NULL: nothing was given */
	const char *runtime;       /* only processes with the runtime of this word (SF_INSIDE_WORDS); NULL: all */
};

/* How many processes were chosen: with `all` none by itself. */
static inline size_t sf_capture_n_pids(const struct sf_capture_options *options)
{
	return options->all ? 0 : options->n_more + 1;
}

/* The i-th of the processes that were chosen. */
static inline int32_t sf_capture_pid(const struct sf_capture_options *options, size_t i)
{
	return i ? options->more[i - 1] : options->pid;
}

static inline bool sf_capture_is_chosen(const struct sf_capture_options *options, int32_t pid)
{
	for (size_t i = 0; i < sf_capture_n_pids(options); i++) {
		if (sf_capture_pid(options, i) == pid)
			return true;
	}
	return false;
}

/* Bits: an engine yields one kind or both. */
enum sf_yield {
	SF_YIELDS_STILLS = 1,      /* sample() of the sink: the caller has the tables of the process and walks */
	SF_YIELDS_STACKS = 2,      /* image(), describe() and trace() of the sink: the walks are done */
};

/* The processes that an engine can watch at once, besides the descendants of each. */
enum sf_reach {
	SF_REACHES_ONE,
	SF_REACHES_SEVERAL,        /* options.more */
	SF_REACHES_ALL,            /* options.all, too */
};

#define SF_CHILD_VARIABLES 8

/* The needs of a child that the engine is to sample. Texts are valid until close(). NULL: nothing. */
struct sf_child_needs {
	const char *library;       /* the path of a library that the child's program is to load first */
	const char *variables[SF_CHILD_VARIABLES + 2]; /* "NAME=value", for the child's environment, up to the first NULL */
};

/* A finding about this machine: whether something that an engine needs is there, and what to do otherwise ("": nothing). */
typedef void sf_finding_fn(void *arg, bool fine, const char *what, const char *advice);

struct sf_capture; /* an engine's state */
struct sf_dump_sink;
struct sf_dump_cost;

struct sf_engine {
	const char *name;       /* as in --engine NAME */
	const char *summary;    /* one line, for help and `stillframe doctor` */
	const char *from;       /* where it samples from, for messages: "inside" or "outside" */
	unsigned yields;        /* enum sf_yield */
	enum sf_reach reach;

	/* The options that not all engines take, name NULL at the end; offsets are unused. NULL: none. */
	const struct sf_option *options;

	/* Whether these settings go together. NULL in the place of the function: they do. */
	bool (*check_settings)(const struct sf_setting *settings, struct sf_error *err);

	/*
	 * Whether this value of SF_SETTING_EVENT has the name of an event of this engine. NULL in the place of the
	 * function: an engine with that option has the events that no other engine has.
	 */
	bool (*has_event)(const char *event);

	/* Whether such an event can come in this process, which runs. NULL in the place of the function: each can. */
	bool (*event_is_in)(const char *event, int32_t pid, struct sf_error *err);

	/* Fills ret with the summary's text beside the name: "sampler walk". NULL in the place of the function: no text. */
	void (*describe)(const struct sf_setting *settings, char *ret, size_t size);

	/*
	 * A warning for the user, printed before the recording starts if open() does not refuse. NULL, also in the place of
	 * the function: none.
	 */
	const char *(*warning)(const struct sf_capture_options *options);

	/* Reports what the engine finds on this machine. NULL in the place of the function: nothing. */
	void (*examine)(sf_finding_fn *report, void *arg);

	/*
	 * Whether the engine works for this process (0: on this machine; SF_ALL_PROCESSES). If not, err has the reason
	 * and what would help.
	 */
	bool (*check)(int32_t pid, struct sf_error *err);

	/*
	 * Whether this process has the runtime of a word (options.runtime). NULL in the place of the function: the engine
	 * takes no such word.
	 */
	bool (*has_runtime)(int32_t pid, const char *word, struct sf_error *err);

	/*
	 * Whether it sees less than an engine should here, so that it is chosen only where no other engine works; then
	 * `why` says why, and what would help. Called where check() said that it works. NULL in the place of the
	 * function: it never does.
	 */
	bool (*is_limited)(int32_t pid, struct sf_error *why);

	/*
	 * Whether it works for a child of the caller, which waits before it runs its program: the engine may try it on
	 * that child. NULL in the place of the function: check(0) says it.
	 */
	bool (*try_child)(int32_t pid, struct sf_error *err);

	/*
	 * Before the child, if there is one, runs its program. `options` and its texts stay valid until close(). Fails
	 * for options that the engine cannot fulfil.
	 */
	bool (*open)(const struct sf_capture_options *options, struct sf_capture **ret,
		     struct sf_error *err);

	/* NULL in the place of the function: a child needs nothing. */
	struct sf_child_needs (*child_needs)(const struct sf_capture *capture);

	/*
	 * Calls `sink` with what it sees, until the target ends, the time is over, or stop(). Called
	 * from the thread that opened it. False when nothing could be seen at all, or when the sink failed.
	 */
	bool (*run)(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err);

	void (*stop)(struct sf_capture *capture);        /* signal-safe, from any thread */
	/*
	 * The exit status of options.child if the engine reaped it (as waitpid gives it); else -1. NULL in the place of
	 * the function: it reaps none.
	 */
	int  (*child_status)(const struct sf_capture *capture);
	void (*close)(struct sf_capture *capture);       /* takes NULL */

	/*
	 * For `dump`: whether the threads of a process can be seen, and every thread of it once (dump.h). Both or
	 * neither; NULL in the place of the functions: it has no such stills.
	 */
	bool (*check_dump)(int32_t pid, struct sf_error *err);
	bool (*dump)(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost,
		     struct sf_error *err);
	bool dumps_unheld;      /* no thread is held that does not run: for `dump`, before the others */
};

/* X(name): the engines, best first. */
#define SF_ENGINES(X) X(perf) X(bpf) X(ptrace) X(signal)

#define X(name) extern const struct sf_engine sf_engine_##name;
SF_ENGINES(X)
#undef X

/* The value of a setting; NULL: not given. `settings` may be NULL. */
const char *sf_setting(const struct sf_setting *settings, const char *name);

/* The event that is wanted; NULL: none, as the CPU clock is no event but the default. */
const char *sf_setting_event(const struct sf_setting *settings);

#endif
