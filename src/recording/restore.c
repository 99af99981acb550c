/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading back what a reopened recording needs to be named and finished: modules, frames,
 * functions, which frames have names already, and the totals. Numbers are given in the order in
 * which they were interned, so adding the rows by id gives each its old number again; a file where
 * that does not come out is damaged.
 */
#include <stdlib.h>
#include <string.h>

#include "recording/database.h"
#include "recording/profile.h"
#include "recording/schema.h"
#include "recording/writer.h"

static const char *text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text ? text : "";
}

static uint64_t number_of(sqlite3_stmt *row, int column)
{
	return (uint64_t)sqlite3_column_int64(row, column);
}

static bool restore_session(struct sf_recording *recording, sqlite3_stmt *row)
{
	recording->start_ns = recording->committed_ns = number_of(row, 0);
	recording->last_ns = number_of(row, 1);
	recording->complete = number_of(row, 2) != 0;
	return true;
}

static size_t from_hex(const char *hex, uint8_t *ret, size_t room)
{
	size_t n = strlen(hex) / 2 < room ? strlen(hex) / 2 : room;

	for (size_t i = 0; i < n; i++) {
		const char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		ret[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return n;
}

static bool restore_module(struct sf_recording *recording, sqlite3_stmt *row)
{
	uint8_t build_id[64];
	size_t size = from_hex(text_of(row, 2), build_id, sizeof(build_id));

	return sf_recording_module(recording, &(struct sf_recording_module){
		.number = (uint32_t)number_of(row, 0),
		.path = text_of(row, 1),
		.build_id = build_id,
		.build_id_size = size,
		.note = text_of(row, 3),
	}, NULL);
}

static bool restore_frame(struct sf_recording *recording, sqlite3_stmt *row)
{
	struct sf_frame_key key = {
		.kind = (uint8_t)number_of(row, 1),
		.module = (uint32_t)number_of(row, 2),
		.address = number_of(row, 3),
		.exact = (uint8_t)number_of(row, 4),
		.via = (uint8_t)number_of(row, 5),
	};

	if (key.kind == SF_KIND_WAIT || key.kind == SF_KIND_CUT)
		key.address = sf_recording_text(recording, text_of(row, 6));
	return sf_intern_add(recording->frames, &key, sizeof(key), NULL) == number_of(row, 0);
}

static bool restore_function(struct sf_recording *recording, sqlite3_stmt *row)
{
	struct sf_function_key key = {
		.name = sf_recording_text(recording, text_of(row, 1)),
		.linkage = sf_recording_text(recording, text_of(row, 2)),
		.file = sf_recording_text(recording, text_of(row, 3)),
		.module = (uint32_t)number_of(row, 4),
	};

	return sf_intern_add(recording->functions, &key, sizeof(key), NULL) == number_of(row, 0);
}

static bool restore_label(struct sf_recording *recording, sqlite3_stmt *row)
{
	uint32_t number;

	return sf_recording_label(recording, text_of(row, 1), text_of(row, 2), &number, NULL) &&
	       number == number_of(row, 0);
}

static bool restore_note(struct sf_recording *recording, sqlite3_stmt *row)
{
	return sf_recording_note(recording, (int32_t)number_of(row, 1), text_of(row, 2), NULL) &&
	       sf_intern_count(recording->notes) == number_of(row, 0);
}

static bool restore_named(struct sf_recording *recording, sqlite3_stmt *row)
{
	uint64_t frame = number_of(row, 0);

	if (frame == 0 || frame > sf_intern_count(recording->frames))
		return false;
	while (recording->named.n < frame) {
		if (!sf_vec_push(&recording->named, false))
			return false;
	}
	recording->named.items[frame - 1] = true;
	return true;
}

static bool restore_sample_totals(struct sf_recording *recording, sqlite3_stmt *row)
{
	struct sf_recording_totals *totals = &recording->totals;
	uint64_t end = number_of(row, 0);

	if (end < SF_N_ENDS)
		totals->ends_by[end] += number_of(row, 2);
	totals->samples += number_of(row, 1);
	totals->ticks += number_of(row, 2);
	totals->unheld += number_of(row, 3);
	totals->cpu_seen_ns += number_of(row, 4);
	return true;
}

static bool restore_loss_totals(struct sf_recording *recording, sqlite3_stmt *row)
{
	struct sf_recording_totals *totals = &recording->totals;
	uint64_t cause = number_of(row, 0);

	if (cause < SF_N_LOSSES)
		totals->losses_by[cause] += number_of(row, 1);
	totals->losses += number_of(row, 1);
	totals->ticks += number_of(row, 1);
	totals->cpu_lost_ns += number_of(row, 2);
	if (cause == SF_LOSS_UNSEEN)
		totals->cpu_counted_ns += number_of(row, 2);
	return true;
}

static bool restore_thread_totals(struct sf_recording *recording, sqlite3_stmt *row)
{
	recording->totals.n_processes = (uint32_t)number_of(row, 0);
	recording->totals.n_threads = (uint32_t)number_of(row, 1);
	recording->totals.cpu_counted_ns += number_of(row, 2);
	return true;
}

static bool restore_hold(struct sf_recording *recording, sqlite3_stmt *row)
{
	sf_histogram_add(&recording->holds, number_of(row, 0), number_of(row, 1));
	return true;
}

/* `add` is called for each row; false means damaged (or, hardly ever, no memory). */
static const struct restorer {
	const char *sql;
	bool (*add)(struct sf_recording *recording, sqlite3_stmt *row);
	int since; /* version */
} restorers[] = {
	{ "SELECT start_monotonic_ns, duration_ns, complete FROM session", restore_session },
	{ "SELECT id, path, build_id, note FROM modules ORDER BY id", restore_module },
	{ "SELECT id, kind, module, address, exact, via, label FROM frames ORDER BY id",
	  restore_frame },
	{ "SELECT id, name, linkage, file, module FROM functions ORDER BY id", restore_function },
	{ "SELECT id, key, value FROM labels ORDER BY id", restore_label, 2 },
	{ "SELECT id, pid, text FROM notes ORDER BY id", restore_note, 2 },
	{ "SELECT frame FROM frame_functions WHERE seq = 0", restore_named },
	{ "SELECT \"end\", count(*), sum(ticks), sum(ticks * unheld), sum(cpu_ns) FROM samples "
	  "GROUP BY \"end\"", restore_sample_totals },
	{ "SELECT cause, sum(ticks), sum(cpu_ns) FROM losses GROUP BY cause", restore_loss_totals },
	{ "SELECT (SELECT count(*) FROM processes), count(*), coalesce(sum(cpu_counted_ns), 0) "
	  "FROM threads", restore_thread_totals },
	{ "SELECT up_to_ns, count FROM holds", restore_hold },
};

static bool restore(struct sf_recording *recording, const struct restorer *restorer,
		    struct sf_error *err)
{
	SF_CLEANUP(sqlite3_finalize) sqlite3_stmt *row = NULL;
	int code;

	if (!sf_database_prepare(recording->db, restorer->sql, &row, err))
		return false;
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		if (!restorer->add(recording, row))
			return sf_fail(err, SF_E_INPUT,
				       "%s is damaged: rows are not in the order in "
				       "which stillframe writes them",
				       recording->path);
	}
	return code == SQLITE_DONE || sf_database_fail(recording->db, err);
}

bool sf_recording_restore(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(restorers) / sizeof(restorers[0]); i++) {
		if (recording->version >= restorers[i].since &&
		    !restore(recording, &restorers[i], err))
			return false;
	}
	if (recording->complete)
		return sf_fail(err, SF_E_INPUT, "%s is finished already", recording->path);
	recording->saved_modules = recording->modules.n;
	recording->saved_frames = sf_intern_count(recording->frames);
	recording->saved_functions = sf_intern_count(recording->functions);
	recording->saved_labels = sf_intern_count(recording->labels);
	recording->saved_notes = sf_intern_count(recording->notes);
	return true;
}
