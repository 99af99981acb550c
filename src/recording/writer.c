/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a recording that is being written: create, tick, finish or abandon. */
#include "recording/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "recording/store/database.h"
#include "recording/store/one_file.h"
#include "recording/store/schema.h"

#define FIRST_BURST_NS 100000000u
#define LONGEST_INTERVAL_NS 1000000000u
#define FINISH_PATIENCE_MS 10000    /* for a reader that keeps the last write waiting */

/* Closes and frees; the file stays as it is. */
static void destroy(struct sf_recording *recording)
{
	for (size_t i = 0; i < SF_N_STATEMENTS; i++)
		sqlite3_finalize(recording->statements[i]);
	sqlite3_close(recording->db);
#define X(name) sf_intern_destroy(recording->name);
	SF_RECORDING_INTERNS(X)
#undef X
	sf_vec_deinit(&recording->live);
	sf_vec_deinit(&recording->processes);
	sf_vec_deinit(&recording->threads);
	sf_vec_deinit(&recording->modules);
	sf_vec_deinit(&recording->losses);
	sf_vec_deinit(&recording->samples);
	sf_vec_deinit(&recording->frame_functions);
	sf_vec_deinit(&recording->places);
	sf_vec_deinit(&recording->named);
	sf_vec_deinit(&recording->pending);
	sf_vec_deinit(&recording->managed_ns);
	sf_vec_deinit(&recording->waiting);
	free(recording->path);
	free(recording);
}

static struct sf_recording *make(const char *path, struct sf_error *err)
{
	struct sf_recording *recording = calloc(1, sizeof(*recording));
	bool done = recording && (recording->path = strdup(path));

#define X(name) done = done && (recording->name = sf_intern_create());
	SF_RECORDING_INTERNS(X)
#undef X
	if (done) {
		recording->save_at = SF_BURST_SAMPLES;
		return recording;
	}
	if (recording)
		destroy(recording);
	sf_fail_memory(err);
	return NULL;
}

/* A text of the caller's; NULL counts as "". */
static const char *clean(struct sf_recording *recording, const char *text)
{
	uint32_t number = sf_recording_text(recording, text);

	return number ? sf_recording_string(recording, number) : "";
}

static bool write_about(struct sf_recording *recording, const struct sf_recording_about *about,
			struct sf_error *err)
{
	SF_CLEANUP(sqlite3_finalize) sqlite3_stmt *insert = NULL;

	return sf_database_prepare(recording->db,
				   "INSERT INTO session VALUES(1,?,?,?,?,?,?,?,0,?,?,0)", &insert,
				   err) &&
	       sf_database_write(recording->db, insert, err,
				 SF_TEXT(clean(recording, about->command)),
				 SF_TEXT(clean(recording, about->engine)),
				 SF_TEXT(clean(recording, about->host)),
				 SF_TEXT(clean(recording, about->version)),
				 SF_TEXT(about->arch ? about->arch->name : ""),
				 SF_NUMBER(about->start_unix_ns),
				 SF_NUMBER(about->start_monotonic_ns), SF_NUMBER(about->rate_mhz),
				 SF_NUMBER(about->blocked_rate_mhz));
}

/* A file that was created for nothing: the disk is full, perhaps. */
static void remove_empty(const char *path)
{
	struct stat now;

	if (lstat(path, &now) == 0 && S_ISREG(now.st_mode) && now.st_size == 0)
		unlink(path);
}

void sf_recording_begin(struct sf_recording *recording, uint64_t unix_ns, uint64_t monotonic_ns)
{
	recording->start_unix_ns = unix_ns;
	recording->start_ns = recording->committed_ns = monotonic_ns;
}

bool sf_recording_create(const char *path, const struct sf_recording_about *about,
			 struct sf_recording **ret, struct sf_error *err)
{
	struct sf_recording *recording = make(path, err);
	struct stat before;
	const bool created = lstat(path, &before) != 0;

	if (!recording)
		return false;
	sf_recording_begin(recording, about->start_unix_ns, about->start_monotonic_ns);
	if (sf_recording_file_open(recording, err) &&
	    sf_database_run(recording->db, "BEGIN IMMEDIATE", err) &&
	    sf_schema_create(recording->db, err) && write_about(recording, about, err) &&
	    sf_database_run(recording->db, "COMMIT", err) && sf_recording_prepare(recording, err)) {
		*ret = recording;
		return true;
	}
	destroy(recording);
	if (created)
		remove_empty(path);
	return false;
}

uint64_t sf_recording_relative(struct sf_recording *recording, uint64_t time_ns)
{
	uint64_t relative = time_ns > recording->start_ns ? time_ns - recording->start_ns : 0;

	if (relative > recording->last_ns)
		recording->last_ns = relative;
	return relative;
}

/* From the last burst to the next one: half as long as the recording was then. */
static uint64_t interval_ns(const struct sf_recording *recording)
{
	uint64_t interval = (recording->committed_ns - recording->start_ns) / 2;

	if (interval < FIRST_BURST_NS)
		return FIRST_BURST_NS;
	return interval < LONGEST_INTERVAL_NS ? interval : LONGEST_INTERVAL_NS;
}

bool sf_recording_tick(struct sf_recording *recording, uint64_t now_ns, struct sf_error *err)
{
	if (now_ns < recording->committed_ns + interval_ns(recording) &&
	    recording->samples.n < recording->save_at)
		return true;
	sf_recording_relative(recording, now_ns);
	return sf_recording_save_soon(recording, now_ns, err);
}

/* Until the disk has it, a power failure may still take it. */
static bool reach_disk(struct sf_recording *recording, struct sf_error *err)
{
	if (fsync(sf_one_file_fd(recording->db)) != 0)
		return sf_fail_os(err, "cannot write %s to its disk", recording->path);
	return true;
}

void sf_recording_cut_short(struct sf_recording *recording)
{
	recording->cut_short = true;
}

void sf_recording_end(struct sf_recording *recording, uint64_t end_ns)
{
	sf_recording_relative(recording, end_ns);
	sf_recording_save(recording, NULL);
}

bool sf_recording_finish(struct sf_recording *recording, uint64_t end_ns, struct sf_error *err)
{
	bool done;

	if (end_ns)
		sf_recording_relative(recording, end_ns);
	recording->complete = true;
	sqlite3_busy_timeout(recording->db, FINISH_PATIENCE_MS);
	done = sf_recording_save(recording, err) && reach_disk(recording, err);
	destroy(recording);
	return done;
}

void sf_recording_abandon(struct sf_recording *recording)
{
	if (!recording)
		return;
	sf_recording_save(recording, NULL);
	destroy(recording);
}
