/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture engine: one way to get stills of a program's threads.
 *
 * To add one: write capture/yourname.c, add it to `engines` in engines.c and to meson.build, give
 * tests/e2e/test_record.py its name, and describe it in docs/engines.md. Nothing else
 * knows its name.
 */
#ifndef SF_CAPTURE_ENGINE_H
#define SF_CAPTURE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/sink.h"

struct sf_capture_options {
	int32_t  pid;
	int32_t  child;            /* `pid` is a child of the caller: its exit status is kept; else 0 */
	uint64_t rate_mhz;         /* ticks of running threads, thousandths of a hertz */
	uint64_t blocked_rate_mhz; /* of blocked ones; 0: they are not sampled */
	uint64_t duration_ns;      /* 0: until the target ends or stop() */
	bool     children;         /* follow the descendants too */
	bool     no_interrupt;     /* never interrupt a blocked thread */
	const char *threads;       /* POSIX extended regex on thread names, or NULL */
};

struct sf_capture; /* an engine's state */

struct sf_engine {
	const char *name;       /* as in --engine NAME */
	const char *summary;    /* one line, for help and `stillframe doctor` */

	/* Whether it works for this process (0: on this machine); if not, err says what would help. */
	bool (*check)(int32_t pid, struct sf_error *err);

	bool (*open)(const struct sf_capture_options *options, struct sf_capture **ret,
		     struct sf_error *err);

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

extern const struct sf_engine sf_engine_ptrace;

/* All engines, best first, NULL at the end; and the one with this name, or NULL. */
extern const struct sf_engine *const sf_engines[];
const struct sf_engine *sf_engine_by_name(const char *name);

#endif
