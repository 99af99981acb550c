/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to the file what is not in it yet: one transaction, one function per table.
 *
 * Nothing here forgets anything before the transaction is committed: a burst that fails (disk
 * full, a reader in the way) is rolled back and can be tried again.
 */
#include <string.h>

#include "recording/store/database.h"
#include "recording/writer.h"

static const char *const statements[SF_N_STATEMENTS] = {
	[SF_SAVE_PROCESS] = "REPLACE INTO processes VALUES(?,?,?,?,?,?)",
	[SF_SAVE_THREAD] = "REPLACE INTO threads VALUES(?,?,?,?,?,?,?)",
	[SF_SAVE_MODULE] = "INSERT INTO modules VALUES(?,?,?,?)",
	[SF_SAVE_FRAME] = "INSERT INTO frames VALUES(?,?,?,?,?,?,?)",
	[SF_SAVE_FUNCTION] = "INSERT INTO functions VALUES(?,?,?,?,?)",
	[SF_SAVE_FRAME_FUNCTION] = "REPLACE INTO frame_functions VALUES(?,?,?,?,?,?)",
	[SF_SAVE_STACK] = "INSERT INTO stacks VALUES(?,?,?)",
	[SF_SAVE_LABEL] = "INSERT INTO labels VALUES(?,?,?)",
	[SF_SAVE_NOTE] = "INSERT INTO notes VALUES(?,?,?)",
	[SF_SAVE_SAMPLE] = "INSERT INTO samples VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[SF_SAVE_LOSS] = "REPLACE INTO losses VALUES(?,?,?,?,?,?)",
	[SF_SAVE_HOLD] = "REPLACE INTO holds VALUES(?,?)",
	[SF_SAVE_MEASURE] = "REPLACE INTO measures VALUES(1,?,?,?)",
	[SF_SAVE_SESSION] = "UPDATE session SET start_unix_ns=?, start_monotonic_ns=?, duration_ns=max(duration_ns,?), complete=?",
	[SF_SAVE_BEGIN] = "BEGIN IMMEDIATE",
	[SF_SAVE_COMMIT] = "COMMIT",
};

bool sf_recording_prepare(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < SF_N_STATEMENTS; i++) {
		if (!sf_database_prepare(recording->db, statements[i], &recording->statements[i],
					 err))
			return false;
	}
	return true;
}

#define WRITE(recording, statement, err, ...)                                                      \
	sf_database_write((recording)->db, (recording)->statements[statement], (err), __VA_ARGS__)

#define STRING(recording, number) SF_TEXT(sf_recording_string((recording), (number)))

static bool save_processes(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < recording->processes.n; i++) {
		const struct sf_process_row *process = &recording->processes.items[i];

		if (process->dirty &&
		    !WRITE(recording, SF_SAVE_PROCESS, err, SF_NUMBER(i + 1),
			   SF_NUMBER(process->pid), SF_NUMBER(process->parent),
			   STRING(recording, process->name),
			   STRING(recording, process->command_line), SF_NUMBER(process->start_ns)))
			return false;
	}
	return true;
}

static bool save_threads(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < recording->threads.n; i++) {
		const struct sf_thread_row *thread = &recording->threads.items[i];

		if (thread->dirty &&
		    !WRITE(recording, SF_SAVE_THREAD, err, SF_NUMBER(i + 1),
			   SF_NUMBER(thread->process), SF_NUMBER(thread->tid),
			   STRING(recording, thread->name), SF_NUMBER(thread->start_ns),
			   thread->ended ? SF_NUMBER(thread->end_ns) : SF_NULL,
			   SF_NUMBER(thread->cpu_counted_ns)))
			return false;
	}
	return true;
}

static bool save_loss(struct sf_recording *recording, const struct sf_loss_key *key,
		      const struct sf_loss_row *row, struct sf_error *err)
{
	return !row->dirty ||
	       WRITE(recording, SF_SAVE_LOSS, err, SF_NUMBER(key->thread), SF_NUMBER(key->cause),
		     SF_NUMBER(row->lost.ticks), SF_NUMBER(row->lost.cpu_ns),
		     SF_NUMBER(row->lost.wall_ns), SF_NUMBER(row->lost.amount));
}

static bool save_losses(struct sf_recording *recording, struct sf_error *err)
{
	for (struct sf_loss_key key = { 0 }; key.cause < SF_N_LOSSES; key.cause++) {
		if (!save_loss(recording, &key, &recording->no_thread[key.cause], err))
			return false;
	}
	for (uint32_t i = 0; i < recording->losses.n; i++) {
		if (!save_loss(recording, sf_intern_get(recording->loss_keys, i + 1, NULL),
			       &recording->losses.items[i], err))
			return false;
	}
	return true;
}

static bool save_modules(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = recording->saved_modules; i < recording->modules.n; i++) {
		const struct sf_module_row *row = &recording->modules.items[i];

		if (!WRITE(recording, SF_SAVE_MODULE, err,
			   SF_NUMBER(row->number),
			   STRING(recording, row->path), STRING(recording, row->build_id_hex),
			   STRING(recording, row->note)))
			return false;
	}
	return true;
}

static bool write_frame(struct sf_recording *recording, uint32_t number, const void *row, struct sf_error *err)
{
	const struct sf_frame_key *key = row;
	bool code = key->kind != SF_KIND_WAIT && key->kind != SF_KIND_CUT;

	return WRITE(recording, SF_SAVE_FRAME, err, SF_NUMBER(number), SF_NUMBER(key->kind),
		     SF_NUMBER(key->module), SF_NUMBER(code ? key->address : 0), SF_NUMBER(key->exact),
		     SF_NUMBER(key->via), code ? SF_TEXT("") : STRING(recording, (uint32_t)key->address));
}

static bool write_stack(struct sf_recording *recording, uint32_t number, const void *row, struct sf_error *err)
{
	const struct sf_stack_key *key = row;

	return WRITE(recording, SF_SAVE_STACK, err, SF_NUMBER(number), SF_NUMBER(key->parent),
		     SF_NUMBER(key->frame));
}

static bool write_function(struct sf_recording *recording, uint32_t number, const void *row, struct sf_error *err)
{
	const struct sf_function_key *key = row;

	return WRITE(recording, SF_SAVE_FUNCTION, err, SF_NUMBER(number), STRING(recording, key->name),
		     STRING(recording, key->linkage), STRING(recording, key->file), SF_NUMBER(key->module));
}

static bool write_label(struct sf_recording *recording, uint32_t number, const void *row, struct sf_error *err)
{
	const struct sf_label_key *key = row;

	return WRITE(recording, SF_SAVE_LABEL, err, SF_NUMBER(number), STRING(recording, key->key),
		     STRING(recording, key->value));
}

static bool write_note(struct sf_recording *recording, uint32_t number, const void *row, struct sf_error *err)
{
	const struct sf_note_key *key = row;

	return WRITE(recording, SF_SAVE_NOTE, err, SF_NUMBER(number), SF_NUMBER(key->pid),
		     STRING(recording, key->text));
}

/* The tables whose rows are interned, in the order of enum sf_saved. */
static bool (*const writers[SF_N_SAVED])(struct sf_recording *recording, uint32_t number, const void *row,
					 struct sf_error *err) = {
	write_frame, write_stack, write_function, write_label, write_note,
};

static const struct sf_intern *rows_of(const struct sf_recording *recording, enum sf_saved table)
{
	const struct sf_intern *const all[SF_N_SAVED] = {
		recording->frames, recording->stacks, recording->functions, recording->labels, recording->notes,
	};

	return all[table];
}

static bool save_interned(struct sf_recording *recording, struct sf_error *err)
{
	for (enum sf_saved table = 0; table < SF_N_SAVED; table++) {
		const struct sf_intern *rows = rows_of(recording, table);

		for (uint32_t number = recording->saved[table] + 1; number <= sf_intern_count(rows); number++) {
			if (!writers[table](recording, number, sf_intern_get(rows, number, NULL), err))
				return false;
		}
	}
	return true;
}

static bool save_frame_functions(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < recording->frame_functions.n; i++) {
		const struct sf_frame_function *row = &recording->frame_functions.items[i];

		if (!WRITE(recording, SF_SAVE_FRAME_FUNCTION, err, SF_NUMBER(row->frame),
			   SF_NUMBER(row->seq), SF_NUMBER(row->function), SF_NUMBER(row->line),
			   SF_NUMBER(row->inlined), SF_NUMBER(row->approximate)))
			return false;
	}
	return true;
}

static bool save_samples(struct sf_recording *recording, struct sf_error *err)
{
	for (size_t i = 0; i < recording->samples.n; i++) {
		const struct sf_recording_sample *sample = &recording->samples.items[i];
		uint32_t stack;

		if (sf_recording_innermost(recording, sample->stack, &stack) &&
		    !WRITE(recording, SF_SAVE_SAMPLE, err, SF_NUMBER(sample->time_ns),
			   SF_NUMBER(sample->thread), SF_NUMBER(stack),
			   SF_NUMBER(sample->cpu_ns), SF_NUMBER(sample->wall_ns),
			   SF_NUMBER(sample->amount), SF_NUMBER(sample->ticks), SF_NUMBER(sample->state),
			   SF_NUMBER(sample->end), SF_NUMBER(sample->unheld),
			   SF_NUMBER(sample->syscall),
			   sample->label ? SF_NUMBER(sample->label) : SF_NULL,
			   sample->second_label ? SF_NUMBER(sample->second_label) : SF_NULL))
			return false;
	}
	return true;
}

static bool save_holds(struct sf_recording *recording, struct sf_error *err)
{
	const struct sf_histogram *holds = &recording->holds;

	for (unsigned i = 0; i < SF_HISTOGRAM_BUCKETS && recording->holds_dirty; i++) {
		if (holds->counts[i] &&
		    !WRITE(recording, SF_SAVE_HOLD, err, SF_NUMBER(sf_histogram_up_to(i)),
			   SF_NUMBER(holds->counts[i])))
			return false;
	}
	return true;
}

static bool save_measure(struct sf_recording *recording, struct sf_error *err)
{
	return !recording->measure_dirty ||
	       WRITE(recording, SF_SAVE_MEASURE, err, STRING(recording, recording->measure),
		     STRING(recording, recording->measure_unit),
		     recording->is_counted ? SF_NUMBER(recording->totals.amount_counted) : SF_NULL);
}

static bool save_session(struct sf_recording *recording, struct sf_error *err)
{
	return WRITE(recording, SF_SAVE_SESSION, err, SF_NUMBER(recording->start_unix_ns),
		     SF_NUMBER(recording->start_ns), SF_NUMBER(recording->last_ns),
		     SF_NUMBER(recording->complete && !recording->cut_short));
}

static bool (*const savers[])(struct sf_recording *recording, struct sf_error *err) = {
	save_processes, save_threads, save_losses, save_modules, save_interned, save_frame_functions, save_samples,
	save_holds, save_measure, save_session,
};

/* Samples that wait for names stay. */
static void forget_samples(struct sf_recording *recording)
{
	const size_t n = recording->samples.n;
	size_t kept = 0;
	uint32_t stack;

	for (size_t i = 0; recording->left_out && i < n; i++) {
		const struct sf_recording_sample sample = recording->samples.items[i];

		if (!sf_recording_innermost(recording, sample.stack, &stack))
			recording->samples.items[kept++] = sample;
	}
	recording->samples.n = kept;
}

/* Everything is in the file now. */
static void forget(struct sf_recording *recording)
{
	for (size_t i = 0; i < recording->processes.n; i++)
		recording->processes.items[i].dirty = false;
	for (size_t i = 0; i < recording->threads.n; i++)
		recording->threads.items[i].dirty = false;
	for (size_t i = 0; i < recording->losses.n; i++)
		recording->losses.items[i].dirty = false;
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++)
		recording->no_thread[cause].dirty = false;
	recording->saved_modules = recording->modules.n;
	for (enum sf_saved table = 0; table < SF_N_SAVED; table++)
		recording->saved[table] = sf_intern_count(rows_of(recording, table));
	recording->frame_functions.n = 0;
	recording->n_saves++;
	forget_samples(recording);
	recording->holds_dirty = recording->measure_dirty = false;
}

static bool save_all(struct sf_recording *recording, struct sf_error *err)
{
	if (!sf_recording_name_waiting(recording, recording->complete, err))
		return false;
	if (!WRITE(recording, SF_SAVE_BEGIN, err))
		return false;
	for (size_t i = 0; i < sizeof(savers) / sizeof(savers[0]); i++) {
		if (!savers[i](recording, err))
			return false;
	}
	return WRITE(recording, SF_SAVE_COMMIT, err);
}

static bool save(struct sf_recording *recording, int *code_ret, struct sf_error *err)
{
	if (save_all(recording, err)) {
		forget(recording);
		return true;
	}
	*code_ret = sqlite3_errcode(recording->db) & 0xff;
	if (!sqlite3_get_autocommit(recording->db))
		sqlite3_exec(recording->db, "ROLLBACK", NULL, NULL, NULL);
	return false;
}

bool sf_recording_save(struct sf_recording *recording, struct sf_error *err)
{
	int code = SQLITE_OK;

	return save(recording, &code, err);
}

bool sf_recording_save_soon(struct sf_recording *recording, uint64_t now_ns, struct sf_error *err)
{
	int code = SQLITE_OK;
	bool done = save(recording, &code, err);

	/* After a failure, not again with the very next sample. */
	recording->committed_ns = now_ns;
	recording->save_at = recording->samples.n + SF_BURST_SAMPLES;
	return done || code == SQLITE_BUSY;
}
