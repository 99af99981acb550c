/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `stillframe record`: their table, the check of which go together, and their conversion to the options of
 * a session.
 *
 * To add one: a field, a line in a table of record_options.c, and a line in sf_record_session if a session or all
 * engines need it. An option that only some engines take is in their own tables (capture/engine.h). All text is argv's
 * or constant; nothing is owned.
 */
#ifndef SF_CLI_RECORD_OPTIONS_H
#define SF_CLI_RECORD_OPTIONS_H

#include "base/options.h"
#include "capture/engine.h"
#include "session/session.h"

struct sf_record_options {
	int32_t pid;
	uint64_t duration_ns;
	uint64_t rate_mhz, blocked_rate_mhz;
	const char *output, *threads;
	uint32_t max_depth;
	int clock, engine;
	struct sf_setting settings[SF_MAX_SETTINGS + 1]; /* of engines */
	bool children, no_interrupt, quiet;
};

/* With the options of all engines. */
const struct sf_option *sf_record_option_table(void);

struct sf_record_options sf_record_defaults(void);

/*
 * Whether what was given makes sense, before a command is started, which would run for nothing.
 * `rest`: where in the `argc` words the command begins.
 */
bool sf_record_check(const struct sf_record_options *given, int argc, int rest,
		     struct sf_error *err);

/* The engine that was asked for by its name, or NULL. */
const struct sf_engine *sf_record_named_engine(const struct sf_record_options *given);

/* The session's options, without the engine, the command and the values known only when it runs. Points into `given`. */
struct sf_session_options sf_record_session(const struct sf_record_options *given);

#endif
