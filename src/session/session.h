/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where target, engine, unwind tables, symbols and recording meet.
 *
 * A session records: it runs an engine, walks the stills that come, and writes the recording; at
 * the end it names the addresses. Or it dumps: every thread's stack, once.
 */
#ifndef SF_SESSION_SESSION_H
#define SF_SESSION_SESSION_H

#include "base/error.h"
#include "capture/engine.h"
#include "recording/profile/profile.h"
#include "recording/recording.h"
#include "session/launch.h"

struct sf_session_options {
	const struct sf_engine *engine;
	struct sf_capture_options capture;
	bool awaiters;            /* asynchronous functions have as callers those that await them; needs an engine that yields stills */
	const char *output;       /* the recording's path */
	const char *command;      /* what is watched, for people */
	const char *note;         /* of the choice of the engine, for the summary and the recording; NULL: none */
	struct sf_launched *launched; /* a command that is to start now; NULL: none */
};

/* The results of a session, for the summary. */
struct sf_session_result {
	struct sf_recording_totals totals;
	uint64_t duration_ns;     /* of the recording itself, without naming */
	uint64_t own_cpu_ns;      /* stillframe's own CPU time, from its start to the end of the recording */
	uint64_t inside_cpu_ns;   /* of the engine's threads in the processes that were watched, but for processes that were killed */
	uint64_t names_ns;        /* CPU time of the processes that looked up names, until all have them */
	uint64_t own_memory;      /* peak, bytes */
	int child_status;         /* as waitpid gives it, -1 unknown */
	char notes[1024];         /* what the engine wants to be read, a line each */
};

/*
 * Records until the target ends, the time is over, or sf_session_stop. False when nothing was
 * recorded, or when the recording was cut short; what was recorded until then is in the file, and the
 * result is filled in.
 */
bool sf_session_record(const struct sf_session_options *options, struct sf_session_result *result,
		       struct sf_error *err);

/* Ends the recording under way, if there is one. Signal-safe. */
void sf_session_stop(void);

/*
 * Reads a recording for a view. One whose stillframe was killed gets names, from the files that
 * still are what was mapped then; the file itself is never changed. A stream file (stream/file.h)
 * is imported on the way (session/import.h).
 */
bool sf_session_load(const char *path, bool split_kinds, struct sf_profile **ret, struct sf_error *err);

#endif
