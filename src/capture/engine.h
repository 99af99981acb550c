/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture engine: one way to get stills of a program's threads.
 *
 * To add one: write capture/yourname.c, add it to SF_ENGINES and to meson.build, give
 * tests/e2e/test_record.py its name, and describe it in docs/engines.md. Nothing else
 * knows its name.
 */
#ifndef SF_CAPTURE_ENGINE_H
#define SF_CAPTURE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/sink.h"

/* For engines on the inside (agent/options.h has the words). Zero: the agent's default. */
struct sf_inside_options {
	const char *walk;          /* sampler, handler */
	const char *runtime_walk;     /* vmstructs, agct, both */
	const char *cpu_clock;     /* auto, perf, timer, itimer, tick */
	const char *signal;        /* a name or a number */
	const char *only;          /* all, registered, main */
	uint32_t per_tick;         /* 0: all threads; counts if has_per_tick is set */
	bool has_per_tick;
};

struct sf_capture_options {
	int32_t  pid;
	int32_t  child;            /* `pid` is a child of the caller: its exit status is kept; else 0 */
	uint64_t rate_mhz;         /* ticks of running threads, thousandths of a hertz */
	uint64_t blocked_rate_mhz; /* of blocked ones; 0: they are not sampled */
	uint64_t duration_ns;      /* 0: until the target ends or stop() */
	bool     children;         /* follow the descendants too */
	bool     no_interrupt;     /* never interrupt a blocked thread */
	uint32_t max_cost;         /* percent of all CPUs that it may take; 0: its own limit */
	const char *threads;       /* POSIX extended regex on thread names, or NULL */
	uint32_t max_depth;        /* frames; 0: SF_DEFAULT_DEPTH */
	const char *clock;         /* cpu, wall, both: what the rates above were made from; NULL: both */
	const char *program;       /* of the child: what it is about to run, as execvp() takes it; or NULL */
	struct sf_inside_options inside;
};

struct sf_capture; /* an engine's state */

struct sf_engine {
	const char *name;       /* as in --engine NAME */
	const char *summary;    /* one line, for help and `stillframe doctor` */
	bool inside;            /* samples are taken by the process itself: sf_inside_options count */

	/* Whether it works for this process (0: on this machine); if not, err says what would help. */
	bool (*check)(int32_t pid, struct sf_error *err);

	/*
	 * Whether it works for a child of the caller's that waits to be let go; that one may be tried on.
	 * NULL in the place of the function: check(0) tells.
	 */
	bool (*try_child)(int32_t pid, struct sf_error *err);

	/* Before the child, if there is one, is let go. `options` and its texts stay valid until close(). */
	bool (*open)(const struct sf_capture_options *options, struct sf_capture **ret,
		     struct sf_error *err);

	/*
	 * What the child's environment has to hold besides what it inherits: "NAME=value", NULL at the
	 * end, valid until close(). NULL in the place of the function: nothing.
	 */
	const char *const *(*environment)(const struct sf_capture *capture);

	/*
	 * Tells `sink` what it sees, until the target ends, the time is over, or stop(). Called
	 * from the thread that opened it. False when nothing could be seen at all, or when the sink failed.
	 */
	bool (*run)(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err);

	void (*stop)(struct sf_capture *capture);        /* signal-safe */
	/* The exit status of options.child if the engine reaped it (as waitpid gives it); else -1. */
	int  (*child_status)(const struct sf_capture *capture);
	void (*close)(struct sf_capture *capture);       /* takes NULL */
};

/* X(name): the engines, best first. */
#define SF_ENGINES(X) X(ptrace) X(signal)

#define X(name) extern const struct sf_engine sf_engine_##name;
SF_ENGINES(X)
#undef X

/* All engines, best first, NULL at the end; and the one with this name, or NULL. */
extern const struct sf_engine *const sf_engines[];
const struct sf_engine *sf_engine_by_name(const char *name);

#endif
