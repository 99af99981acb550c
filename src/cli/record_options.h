/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `stillframe record`: their table, what they give, and which of them make sense together.
 *
 * To add an option: a line in a table of record_options.c, and a field of struct sf_record_given if a session has none
 * for it. An option that only some engines take is in their own tables (capture/engine.h).
 */
#ifndef SF_CLI_RECORD_OPTIONS_H
#define SF_CLI_RECORD_OPTIONS_H

#include "base/options.h"
#include "capture/process_filter.h"
#include "session/session.h"

/* The values of the options, mostly those of the session. */
struct sf_record_given {
	struct sf_session_options session;
	struct sf_pids pids;
	struct sf_strings filters;
	struct sf_process_filter filter;                         /* made of them */
	int clock, engine;                               /* indexes of clocks and engine_names */
	struct sf_setting settings[SF_MAX_SETTINGS + 1]; /* of engines */
	bool quiet, inlined;
};

/* Ends with an option without a name; static. */
const struct sf_option *sf_record_options(void);

/* Before the options are read: what has a value without being given. */
void sf_record_begin(struct sf_record_given *given);

/*
 * Takes what was read. Fails where the options make no sense: before a command is started, which would run for nothing.
 * `n_words`: of the command behind the options.
 */
bool sf_record_take(struct sf_record_given *given, int n_words, struct sf_error *err);

/* The engine that --engine names; NULL: none. */
const struct sf_engine *sf_record_engine(const struct sf_record_given *given);

#endif
