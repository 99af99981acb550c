/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a recording that is being written: its file, its beginning, when it is saved, and its end.
 *
 * A flock on the file admits one writer at a time. The lock ends with the writer, however the writer
 * ends. Other users may be able to write to the folder, so no other file is ever made, read, or
 * removed there: one_file.h.
 *
 * The journal is in memory, and a transaction reaches the file in one step: commit.h. The alternative
 * was a journal beside the file. But other users can place one there, and after a kill the recording
 * would be two files. Synchronous is off: the kernel keeps the bytes that a killed process wrote, and
 * waiting for the disk would delay the sampling. docs/recording.md describes the effect of a power
 * failure.
 */
#include "recording/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "base/output_file.h"
#include "recording/store/database.h"
#include "recording/store/one_file.h"
#include "recording/store/schema.h"

#define FIRST_BURST_NS 100000000u
#define LONGEST_INTERVAL_NS 1000000000u
#define FINISH_PATIENCE_MS 10000    /* for a reader that keeps the last write waiting */
#define READER_PATIENCE_MS 50       /* for a reader that keeps a commit waiting */
#define MAX_PENDING_NAMES 50000     /* rows; keeps a transaction, which stays in memory, small */
#define HEADER_SIZE 100
#define APPLICATION_ID_OFFSET 68

/* --- the file --- */

static bool is_recording(const unsigned char *header)
{
	const unsigned char *id = header + APPLICATION_ID_OFFSET;

	return memcmp(header, "SQLite format 3", 16) == 0 &&
	       ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
		       SF_APPLICATION_ID;
}

/* Only recordings and empty files are replaced: -o may be a slip of the finger. */
static bool may_replace(int fd, const char *path, struct sf_error *err)
{
	unsigned char header[HEADER_SIZE];
	ssize_t size = pread(fd, header, sizeof(header), 0);

	if (size < 0)
		return sf_fail_os(err, "cannot read %s", path);
	if (size == 0 || (size == HEADER_SIZE && is_recording(header)))
		return true;
	sf_fail(err, SF_E_INPUT, "%s exists and is not a recording: not replaced", path);
	return sf_fail_hint(err, "Give another name with -o, or remove it first.");
}

static bool lock(int fd, const char *path, struct sf_error *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return true; /* a file system without locks: go without */
	sf_fail(err, SF_E_INPUT, "another stillframe is writing to %s", path);
	return sf_fail_hint(err, "Give another name with -o, or stop that one first.");
}

static bool open_locked(const char *path, int *fd_ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_output_file_open(path, &fd, err) || !lock(fd, path, err) ||
	    !may_replace(fd, path, err))
		return false;
	if (ftruncate(fd, 0) != 0)
		return sf_fail_os(err, "cannot empty %s", path);
	*fd_ret = sf_steal_fd(&fd);
	return true;
}

/*
 * cache_spill: a transaction stays in memory until it is committed, so that the file itself is
 * written only then. The time-out is for readers, which keep a commit waiting.
 */
static const char settings[] =
	"PRAGMA page_size = 4096;"
	"PRAGMA auto_vacuum = 0;"
	"PRAGMA journal_mode = MEMORY;"
	"PRAGMA synchronous = OFF;"
	"PRAGMA cache_spill = OFF;"
	"PRAGMA temp_store = MEMORY;"
	"PRAGMA trusted_schema = OFF";

static bool open_file(struct sf_recording *recording, struct sf_error *err)
{
	int fd = -1;

	if (!open_locked(recording->path, &fd, err) ||
	    !sf_database_open(fd, true, recording->path, &recording->db, err))
		return false;
	sqlite3_busy_timeout(recording->db, READER_PATIENCE_MS);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
	sqlite3_db_config(recording->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
	return sf_database_run(recording->db, settings, err);
}

/* --- the recording --- */

/* Closes and frees; the file stays as it is. */
static void destroy(struct sf_recording *recording)
{
	for (size_t i = 0; i < SF_N_STATEMENTS; i++)
		sqlite3_finalize(recording->statements[i]);
	sqlite3_close(recording->db);
#define X(name) sf_intern_destroy(recording->name);
	SF_RECORDING_INTERNS(X)
#undef X
	sf_vec_deinit(&recording->pids_now);
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
	if (open_file(recording, err) &&
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

bool sf_recording_names(struct sf_recording *recording, uint32_t module, uint64_t address,
			const struct sf_location *names, size_t n, struct sf_error *err)
{
	if (!sf_recording_name_place(recording, module, address, names, n))
		return sf_fail_memory(err);
	return recording->frame_functions.n < MAX_PENDING_NAMES || sf_recording_save(recording, err);
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
