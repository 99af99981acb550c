/* SPDX-License-Identifier: Apache-2.0 */
/* A session: runs an engine, writes the recording, and names and finishes it at the end. */
#include "session/session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/process.h"
#include "session/naming.h"
#include "session/recorder.h"

/* The capture that sf_session_stop ends; set while an engine runs. */
static struct sf_capture *_Atomic running;
static const struct sf_engine *_Atomic running_engine;
static atomic_bool stop_wanted;

/* The recording has ended: what is stopped from now on is the names. */
static atomic_bool finishing, names_unwanted;

void sf_session_stop(void)
{
	struct sf_capture *capture;

	atomic_store(atomic_load(&finishing) ? &names_unwanted : &stop_wanted, true);
	capture = atomic_load(&running);
	if (capture)
		atomic_load(&running_engine)->stop(capture);
}

/*
 * Opens the engine, and lets the command go: what the engine needs in its environment is known
 * then.
 */
static bool start(const struct sf_session_options *options, struct sf_capture **ret,
		  struct sf_error *err)
{
	const struct sf_engine *engine = options->engine;
	struct sf_child_needs needs = { 0 };

	if (!engine->open(&options->capture, ret, err)) {
		if (options->launched)
			sf_launch_cancel(options->launched);
		return false;
	}
	if (engine->child_needs)
		needs = engine->child_needs(*ret);
	if (!options->launched ||
	    sf_launch_go(options->launched, options->command, &needs, err))
		return true;
	engine->close(*ret);
	return false;
}

/* *end_ns: when the last sample may have been taken. Closing an engine may take a while. */
static bool run_engine(const struct sf_session_options *options, struct sf_capture *capture,
		       const struct sf_sink *sink, uint64_t *end_ns, struct sf_session_result *result,
		       struct sf_error *err)
{
	bool fine;

	atomic_store(&running_engine, options->engine);
	atomic_store(&running, capture);
	if (atomic_load(&stop_wanted)) /* a signal came before there was anything to stop */
		options->engine->stop(capture);
	fine = options->engine->run(capture, sink, err);
	*end_ns = sf_now_ns();
	atomic_store(&running, NULL);
	if (options->engine->child_status)
		result->child_status = options->engine->child_status(capture);
	options->engine->close(capture);
	return fine;
}

static bool create_recording(const struct sf_session_options *options, struct sf_recording **ret,
			     struct sf_error *err)
{
	struct utsname host = { .nodename = "" };
	struct sf_recording_about about = {
		.command = options->command,
		.engine = options->engine->name,
		.host = host.nodename,
		.version = SF_VERSION,
		.start_unix_ns = sf_unix_now_ns(),
		.start_monotonic_ns = sf_now_ns(),
		.rate_mhz = options->capture.rate_mhz,
		.blocked_rate_mhz = options->capture.blocked_rate_mhz,
		.arch = sf_arch_host(),
	};

	uname(&host);
	return sf_recording_create(options->output, &about, ret, err);
}

/* `names_ns`: CPU time of the children that looked up names. */
static void measure_self(struct sf_session_result *result, uint64_t names_ns)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	result->own_cpu_ns =
		(uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u + names_ns;
	result->own_memory = (uint64_t)usage.ru_maxrss * 1024;
}

/* Names the samples and finishes the recording, which ended at end_ns, even if it was cut short: `whole` false. */
static bool finish(struct sf_recorder *recorder, struct sf_recording *recording, struct sf_name_sources *sources, uint64_t end_ns,
		   bool whole, struct sf_session_result *result, struct sf_error *err)
{
	if (!whole)
		sf_recording_cut_short(recording);
	sf_recording_totals(recording, &result->totals);
	if (!sf_session_name_all(recording, recorder->walker.images, sources, err)) {
		sf_recording_abandon(recording);
		return false;
	}
	sf_recording_totals(recording, &result->totals);
	if (!sf_recording_finish(recording, end_ns, err))
		return false;
	result->totals.unsaved = 0;
	return true;
}

bool sf_session_record(const struct sf_session_options *options, struct sf_session_result *result,
		       struct sf_error *err)
{
	struct sf_recording *recording;
	struct sf_capture *capture;
	struct sf_recorder recorder;
	struct sf_name_sources sources = { .lookup = sf_lookup_begin(&names_unwanted) };
	const uint64_t names_ns = sources.lookup.cpu_left_ns;
	struct sf_sink sink;
	uint64_t start_ns, end_ns;
	bool fine;

	*result = (struct sf_session_result){ .child_status = -1 };
	if (!create_recording(options, &recording, err))
		return false;
	if (!sf_recorder_init(&recorder, recording, options->capture.max_depth, err)) {
		sf_recording_abandon(recording);
		return false;
	}
	sf_images_stop_on(recorder.walker.images, &stop_wanted);
	recorder.walker.awaiters = options->awaiters;
	recorder.walker.completes = (options->launched || options->capture.complete) && !options->capture.not_complete;
	sink = sf_recorder_sink(&recorder);
	if (!start(options, &capture, err)) {
		sf_recorder_deinit(&recorder);
		sf_recording_abandon(recording);
		unlink(options->output);
		return false;
	}
	/*
	 * The tables for walks are made before the first still; a process that cannot be read has none. A command that begins
	 * has hardly mapped a file yet, and runs meanwhile.
	 */
	if (options->engine->yields & SF_YIELDS_STILLS && !options->launched) {
		for (size_t i = 0; i < sf_capture_n_pids(&options->capture); i++)
			sf_walker_prepare(&recorder.walker, sf_capture_pid(&options->capture, i), NULL);
	}
	start_ns = sf_now_ns();
	sf_recording_begin(recording, sf_unix_now_ns(), start_ns);
	recorder.early = sf_early_names_open(recording, recorder.walker.images, &sources,
					     options->capture.duration_ns ? start_ns + options->capture.duration_ns : UINT64_MAX);
	if (options->note)
		sink.note(sink.arg, options->capture.pid, options->note, NULL);
	fine = run_engine(options, capture, &sink, &end_ns, result, err);
	result->duration_ns = end_ns - start_ns;
	atomic_store(&finishing, true);
	sf_recording_end(recording, end_ns);
	fine = sf_early_names_close(recorder.early, fine ? err : NULL) && fine;
	recorder.early = NULL;
	result->inside_cpu_ns = recorder.inside_cpu_ns;
	measure_self(result, names_ns - sources.lookup.cpu_left_ns);
	_Static_assert(sizeof(result->notes) == sizeof(recorder.notes),
		       "one is copied into the other");
	memcpy(result->notes, recorder.notes, sizeof(result->notes));
	if (!finish(&recorder, recording, &sources, end_ns, fine, result, fine ? err : NULL))
		fine = false;
	result->names_ns = sources.lookup.used_ns;
	sf_name_sources_deinit(&sources);
	sf_recorder_deinit(&recorder);
	return fine;
}
