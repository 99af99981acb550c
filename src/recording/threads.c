/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the target's processes, threads and modules to a recording. */
#include <string.h>

#include "base/hex.h"
#include "recording/writer.h"

struct tid_key {
	uint32_t process; /* index + 1 */
	int32_t tid;
};

/* What is known of the process that has this pid now; NULL when memory ran out. */
static struct sf_pid_now *now_of(struct sf_recording *recording, int32_t pid)
{
	const uint32_t number = sf_intern_add(recording->pids, &pid, sizeof(pid), NULL);

	if (!number)
		return NULL;
	while (recording->pids_now.n < number) {
		if (!sf_vec_push(&recording->pids_now, (struct sf_pid_now){ 0 }))
			return NULL;
	}
	return &recording->pids_now.items[number - 1];
}

static bool is_another(const struct sf_pid_now *now, uint64_t started)
{
	return now->started && started ? now->started != started : now->ended;
}

bool sf_recording_process_met(struct sf_recording *recording, int32_t pid, uint64_t started, struct sf_error *err)
{
	struct sf_pid_now *now = now_of(recording, pid);

	if (!now)
		return sf_fail_memory(err);
	if (is_another(now, started))
		*now = (struct sf_pid_now){ 0 };
	now->ended = false;
	now->started = started ? started : now->started;
	return true;
}

bool sf_recording_process_ended(struct sf_recording *recording, int32_t pid, struct sf_error *err)
{
	struct sf_pid_now *now = now_of(recording, pid);

	if (!now)
		return sf_fail_memory(err);
	now->ended = true;
	return true;
}

static bool add_process(struct sf_recording *recording, int32_t pid, struct sf_pid_now *now)
{
	struct sf_process_row row = { .pid = pid };

	if (!sf_vec_push(&recording->processes, row))
		return false;
	now->process = (uint32_t)recording->processes.n;
	recording->totals.n_processes++;
	return true;
}

/* A process that has ended, and that its parent has not waited for, has its name still, and no command line. */
static void name_process(struct sf_recording *recording, struct sf_process_row *row, const char *name, const char *command_line)
{
	const uint32_t before = row->name;

	row->name = sf_recording_text(recording, name);
	if (*command_line || row->name != before)
		row->command_line = sf_recording_text(recording, command_line);
}

bool sf_recording_process(struct sf_recording *recording, int32_t pid, int32_t parent,
			  const char *name, const char *command_line, uint64_t time_ns,
			  struct sf_error *err)
{
	struct sf_pid_now *now = now_of(recording, pid);
	const bool is_new = now && !now->process;
	struct sf_process_row *row;

	if (!now || (is_new && !add_process(recording, pid, now)))
		return sf_fail_memory(err);
	row = &recording->processes.items[now->process - 1];
	if (is_new)
		row->start_ns = sf_recording_relative(recording, time_ns);
	row->parent = parent;
	if (is_new || *name || *command_line)
		name_process(recording, row, name, command_line);
	row->dirty = true;
	return (row->name && row->command_line) || sf_fail_memory(err);
}

/* Where the number of the living thread with this tid stands; NULL when memory ran out. */
static uint32_t *live_slot(struct sf_recording *recording, uint32_t process, int32_t tid)
{
	struct tid_key key = { .process = process, .tid = tid };
	uint32_t number = sf_intern_add(recording->tids, &key, sizeof(key), NULL);

	if (!number)
		return NULL;
	while (recording->live.n < number) {
		if (!sf_vec_push(&recording->live, 0))
			return NULL;
	}
	return &recording->live.items[number - 1];
}

static bool add_thread(struct sf_recording *recording, const struct sf_thread_row *row,
		       uint32_t *ret)
{
	if (!row->process || !row->name || !sf_vec_push(&recording->threads, *row))
		return false;
	*ret = (uint32_t)recording->threads.n;
	recording->totals.n_threads++;
	return true;
}

/*
 * A process has one first thread, whatever it executes: an agent sees it end with
 * one program and come with the next.
 */
static bool is_first(const struct sf_recording *recording, const struct sf_thread_row *row)
{
	return recording->processes.items[row->process - 1].pid == row->tid;
}

/* A process that had ended when its name was read has that of its first thread. */
static void name_unnamed(struct sf_recording *recording, const struct sf_thread_row *first)
{
	struct sf_process_row *process = &recording->processes.items[first->process - 1];

	if (process->name == sf_recording_text(recording, ""))
		process->name = first->name;
	process->dirty = true;
}

/* A process starts with its first thread. Until that comes, its start is the time of the last write to the disk. */
static void begin_process(struct sf_recording *recording, const struct sf_thread_row *thread)
{
	struct sf_process_row *process = &recording->processes.items[thread->process - 1];

	if (process->has_threads)
		return;
	process->has_threads = process->dirty = true;
	process->start_ns = thread->start_ns;
}

static void go_on(struct sf_thread_row *row)
{
	row->cpu_before_ns = row->cpu_counted_ns;
	row->ended = false;
	row->dirty = true;
}

/* The number of the process that has this pid, which is added if there is none; 0: no memory. */
static uint32_t need_process(struct sf_recording *recording, int32_t pid, uint64_t time_ns)
{
	struct sf_pid_now *now = now_of(recording, pid);

	if (!now || (!now->process && !sf_recording_process(recording, pid, 0, "", "", time_ns, NULL)))
		return 0;
	return now->process;
}

bool sf_recording_thread(struct sf_recording *recording, int32_t pid, int32_t tid,
			 const char *name, uint64_t time_ns, uint32_t *ret, struct sf_error *err)
{
	struct sf_thread_row row = { .process = need_process(recording, pid, time_ns), .tid = tid, .dirty = true };
	uint32_t *live = row.process ? live_slot(recording, row.process, tid) : NULL;

	if (!live)
		return sf_fail_memory(err);
	if (*live) {
		*ret = *live;
		if (recording->threads.items[*ret - 1].ended) {
			go_on(&recording->threads.items[*ret - 1]);
			return sf_recording_thread_name(recording, *ret, name, err);
		}
		return true;
	}
	row.name = sf_recording_text(recording, name);
	row.start_ns = sf_recording_relative(recording, time_ns);
	if (!add_thread(recording, &row, live))
		return sf_fail_memory(err);
	begin_process(recording, &row);
	if (is_first(recording, &row))
		name_unnamed(recording, &row);
	*ret = *live;
	return true;
}

bool sf_recording_thread_name(struct sf_recording *recording, uint32_t thread, const char *name,
			      struct sf_error *err)
{
	struct sf_thread_row *row = &recording->threads.items[thread - 1];
	uint32_t text = sf_recording_text(recording, name);

	if (!text)
		return sf_fail_memory(err);
	row->dirty |= row->name != text;
	row->name = text;
	return true;
}

bool sf_recording_thread_end(struct sf_recording *recording, uint32_t thread, uint64_t time_ns,
			     uint64_t cpu_counted_ns, struct sf_error *err)
{
	struct sf_thread_row *row = &recording->threads.items[thread - 1];
	uint32_t *live = live_slot(recording, row->process, row->tid);

	if (!live)
		return sf_fail_memory(err);
	if (*live == thread && !is_first(recording, row))
		*live = 0;
	cpu_counted_ns += row->cpu_before_ns;
	recording->totals.cpu_counted_ns += cpu_counted_ns - row->cpu_counted_ns;
	row->cpu_counted_ns = cpu_counted_ns;
	row->end_ns = sf_recording_relative(recording, time_ns);
	row->ended = row->dirty = true;
	return true;
}

static uint32_t hex_text(struct sf_recording *recording, const uint8_t *bytes, size_t size)
{
	char hex[2 * 64 + 1];

	size = size < 64 ? size : 64;
	sf_hex(bytes, size, hex);
	return sf_recording_text(recording, hex);
}

bool sf_recording_module(struct sf_recording *recording, const struct sf_recording_module *module,
			 struct sf_error *err)
{
	struct sf_module_row row = { .number = module->number };

	if (sf_intern_find(recording->module_numbers, &module->number, sizeof(module->number)))
		return true;
	row.path = sf_recording_text(recording, module->path);
	row.note = sf_recording_text(recording, module->note);
	row.build_id_hex = hex_text(recording, module->build_id, module->build_id_size);
	return (row.path && row.note && row.build_id_hex && sf_vec_push(&recording->modules, row) &&
		sf_intern_add(recording->module_numbers, &module->number, sizeof(module->number), NULL)) ||
	       sf_fail_memory(err);
}
