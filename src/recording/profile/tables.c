/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the tables of a recording. An entry of `forms` lists a table's columns and the values that are
 * allowed in them. A function per table turns a checked row into the profile's form.
 *
 * Every table is read in an order in which its key must grow. This ends the reading of a tree of pages
 * that contains a circle. A row may refer only to rows that were read before it.
 */
#include <stdio.h>
#include <string.h>

#include "recording/profile/loader.h"
#include "recording/store/schema.h"

#define ANY_TIME 0, INT64_MAX
#define ANY_U32 0, UINT32_MAX
#define TEXT true, false, 0, 0
#define NUMBER false, false

/* A text of the row as one of the profile's strings. */
static bool take_string(struct sf_rows *rows, const char *text, uint32_t *ret)
{
	uint32_t number = sf_loader_string(rows->arg, text);

	if (number == UINT32_MAX)
		return sf_fail_memory(rows->err);
	*ret = number;
	return true;
}

/* Rows that others refer to are numbered without gaps. */
static bool check_next(struct sf_rows *rows, int64_t id, size_t n)
{
	return sf_rows_check(rows, "id", id, (int64_t)n + 1, (int64_t)n + 1);
}

static bool copy_text(struct sf_rows *rows, const char *text, char **ret)
{
	*ret = strdup(text);
	return *ret || sf_fail_memory(rows->err);
}

static bool add_session(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_profile *profile = ((struct sf_loader *)rows->arg)->profile;

	if (rows->number > 1)
		return sf_rows_refuse(rows, "there are several");
	profile->start_unix_ns = (uint64_t)v[5].number;
	profile->duration_ns = (uint64_t)v[6].number;
	profile->rate_mhz = (uint64_t)v[7].number;
	profile->blocked_rate_mhz = (uint64_t)v[8].number;
	profile->complete = v[9].number != 0 && !profile->bytes_missing;
	profile->being_written = profile->being_written && !profile->complete;
	return copy_text(rows, v[1].text, &profile->command) &&
	       copy_text(rows, v[2].text, &profile->engine) &&
	       copy_text(rows, v[3].text, &profile->host) &&
	       copy_text(rows, v[4].text, &profile->version);
}

/* Amounts stand in the place of times until a sample has one. */
static bool add_measure(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_profile_measure *measure = &((struct sf_loader *)rows->arg)->profile->measure;

	measure->counted = v[3].number < 0 ? 0 : (uint64_t)v[3].number;
	measure->is_counted = v[3].number >= 0;
	measure->is_all = true;
	return copy_text(rows, v[1].text, &measure->name) && copy_text(rows, v[2].text, &measure->unit);
}

static bool add_process(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_raw_process process = { .pid = (int32_t)v[1].number };

	return check_next(rows, v[0].number, loader->processes.n) &&
	       take_string(rows, v[2].text, &process.name) &&
	       (sf_vec_push(&loader->processes, process) || sf_fail_memory(rows->err));
}

static bool add_thread(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_profile_thread thread = {
		.process = (uint32_t)v[1].number,
		.tid = (int32_t)v[2].number,
		.start_ns = (uint64_t)v[4].number,
		.end_ns = v[5].number < 0 ? loader->profile->duration_ns : (uint64_t)v[5].number,
		.cpu_counted_ns = (uint64_t)v[6].number,
	};
	const struct sf_raw_process *process;

	if (!check_next(rows, v[0].number, loader->threads.n) ||
	    !sf_rows_check(rows, "process", v[1].number, 1, (int64_t)loader->processes.n) ||
	    !take_string(rows, v[3].text, &thread.name))
		return false;
	process = &loader->processes.items[v[1].number - 1];
	thread.pid = process->pid;
	thread.process_name = process->name;
	return sf_vec_push(&loader->threads, thread) || sf_fail_memory(rows->err);
}

static bool add_module(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	size_t n = loader->module_ids.n;
	int64_t last = n ? loader->module_ids.items[n - 1] : 0;
	struct sf_profile_module module = { 0 };

	return sf_rows_check(rows, "id", v[0].number, last + 1, UINT32_MAX) &&
	       take_string(rows, v[1].text, &module.path) &&
	       take_string(rows, v[2].text, &module.build_id) &&
	       ((sf_vec_push(&loader->module_ids, v[0].number) &&
		 sf_vec_push(&loader->modules, module)) || sf_fail_memory(rows->err));
}

/* The profile's number of a row's module; 0 stays 0. */
static bool take_module(struct sf_rows *rows, int64_t id, uint32_t *ret)
{
	const uint32_t number = id ? sf_loader_module(rows->arg, id) : 0;

	if (id && !number)
		return sf_rows_refuse(rows, "there is no module %lld", (long long)id);
	*ret = number;
	return true;
}

static bool add_function(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_profile_function form = { .kind = SF_KIND_NATIVE };
	uint32_t number;

	if (!check_next(rows, v[0].number, loader->named.n) ||
	    !take_string(rows, v[1].text, &form.name) ||
	    !take_string(rows, v[2].text, &form.linkage) ||
	    !take_string(rows, v[3].text, &form.file) ||
	    !take_module(rows, v[4].number, &form.module))
		return false;
	number = sf_loader_function(loader, &form);
	return (number && sf_vec_push(&loader->named, number)) || sf_fail_memory(rows->err);
}

static bool add_frame(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_raw_frame frame = {
		.kind = (uint8_t)v[1].number,
		.address = (uint64_t)v[3].number,
		.via = (uint8_t)v[4].number,
	};

	return check_next(rows, v[0].number, loader->raw_frames.n) &&
	       take_module(rows, v[2].number, &frame.module) &&
	       take_string(rows, v[5].text, &frame.label) &&
	       (sf_vec_push(&loader->raw_frames, frame) || sf_fail_memory(rows->err));
}

static bool add_frame_function(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_raw_function row = { .line = (uint32_t)v[3].number, .inlined = v[4].number != 0,
				       .approximate = v[5].number != 0 };
	struct sf_raw_frame *frame;

	if (!sf_rows_check(rows, "frame", v[0].number, loader->last_key > 1 ? loader->last_key : 1,
			   (int64_t)loader->raw_frames.n))
		return false;
	loader->last_key = v[0].number;
	frame = &loader->raw_frames.items[v[0].number - 1];
	if (!sf_rows_check(rows, "seq", v[1].number, frame->n, frame->n) ||
	    !sf_rows_check(rows, "function", v[2].number, 1, (int64_t)loader->named.n))
		return false;
	if (frame->n++ == 0)
		frame->first = (uint32_t)loader->raw_functions.n;
	row.function = loader->named.items[v[2].number - 1];
	if ((sf_kind_is_managed(frame->kind) || frame->kind == SF_KIND_KERNEL) &&
	    !(row.function = sf_loader_function_of_kind(loader, row.function, frame->kind, row.inlined)))
		return sf_fail_memory(rows->err);
	return sf_vec_push(&loader->raw_functions, row) || sf_fail_memory(rows->err);
}

static bool add_stack(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	size_t n = loader->node_of.n;
	uint32_t parent, node;

	if (!check_next(rows, v[0].number, n) ||
	    !sf_rows_check(rows, "parent", v[1].number, 0, (int64_t)n) ||
	    !sf_rows_check(rows, "frame", v[2].number, 1, (int64_t)loader->raw_frames.n))
		return false;
	parent = v[1].number ? loader->node_of.items[v[1].number - 1] : 0;
	node = sf_loader_expand_stack(loader, parent, (uint32_t)v[2].number);
	return (node && sf_vec_push(&loader->node_of, node)) || sf_fail_memory(rows->err);
}

static bool add_label(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_profile_label label;

	return check_next(rows, v[0].number, loader->labels.n) &&
	       take_string(rows, v[1].text, &label.key) &&
	       take_string(rows, v[2].text, &label.value) &&
	       (sf_vec_push(&loader->labels, label) || sf_fail_memory(rows->err));
}

static bool add_note(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_profile_note note = { .pid = (int32_t)v[1].number };

	return check_next(rows, v[0].number, loader->notes.n) &&
	       take_string(rows, v[2].text, &note.text) &&
	       (sf_vec_push(&loader->notes, note) || sf_fail_memory(rows->err));
}

/* So that no view has to fear an overflow: all of them together stay below 2^63. */
static bool add_times(struct sf_rows *rows, int64_t cpu_ns, int64_t wall_ns)
{
	struct sf_loader *loader = rows->arg;

	loader->cpu_sum_ns += (uint64_t)cpu_ns;
	loader->wall_sum_ns += (uint64_t)wall_ns;
	if (loader->cpu_sum_ns > INT64_MAX || loader->wall_sum_ns > INT64_MAX)
		return sf_rows_refuse(rows, "the times up to here add up to more than 292 years");
	return true;
}

static bool add_amount(struct sf_rows *rows, int64_t amount)
{
	struct sf_loader *loader = rows->arg;

	if (amount && !loader->profile->measure.name)
		return sf_rows_refuse(rows, "it has an amount, and the recording has no measure");
	loader->amount_sum += (uint64_t)amount;
	return loader->amount_sum <= INT64_MAX || sf_rows_refuse(rows, "the amounts up to here add up to more than 2^63");
}

/* A row that a sample refers to, and that was in the missing part of a file. */
static bool is_lost(struct sf_rows *rows, int64_t number, size_t n)
{
	return rows->cut && number > (int64_t)n;
}

/* Where a sample has no label, that column reads as 0. */
static bool add_sample(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	struct sf_profile_sample sample = {
		.label = (uint32_t)v[12].number,
		.second_label = (uint32_t)v[13].number,
		.time_ns = (uint64_t)v[1].number,
		.cpu_ns = (uint64_t)v[4].number,
		.wall_ns = (uint64_t)v[5].number,
		.amount = (uint64_t)v[6].number,
		.ticks = (uint32_t)v[7].number,
		.state = (uint8_t)v[8].number,
		.end = (uint8_t)v[9].number,
		.unheld = (uint8_t)v[10].number,
		.syscall = (int16_t)v[11].number,
	};

	const int64_t stack = is_lost(rows, v[3].number, loader->node_of.n) ? 0 : v[3].number;

	if (is_lost(rows, v[12].number, loader->labels.n))
		sample.label = 0;
	if (is_lost(rows, v[13].number, loader->labels.n))
		sample.second_label = 0;
	if (!sf_rows_check(rows, "id", v[0].number, loader->last_sample + 1, INT64_MAX - 1) ||
	    !sf_rows_check(rows, "thread", v[2].number, 1, (int64_t)loader->threads.n) ||
	    !sf_rows_check(rows, "stack", stack, 0, (int64_t)loader->node_of.n) ||
	    !sf_rows_check(rows, "label", sample.label, 0, (int64_t)loader->labels.n) ||
	    !sf_rows_check(rows, "second_label", sample.second_label, 0, (int64_t)loader->labels.n) ||
	    !add_times(rows, v[4].number, v[5].number) || !add_amount(rows, v[6].number))
		return false;
	if (v[4].number || v[5].number)
		loader->profile->measure.is_all = false;
	loader->last_sample = v[0].number;
	sample.thread = (uint32_t)v[2].number - 1;
	sample.node = stack ? loader->node_of.items[stack - 1] : 0;
	return sf_vec_push(&loader->samples, sample) || sf_fail_memory(rows->err);
}

static bool add_loss(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	int64_t key = v[0].number * SF_N_LOSSES + v[1].number;
	struct sf_profile_loss loss = {
		.thread = v[0].number ? (uint32_t)v[0].number - 1 : UINT32_MAX,
		.cause = (uint8_t)v[1].number,
		.ticks = (uint32_t)v[2].number,
		.cpu_ns = (uint64_t)v[3].number,
		.wall_ns = (uint64_t)v[4].number,
		.amount = (uint64_t)v[5].number,
	};

	if (rows->number > 1 && key <= loader->last_key)
		return sf_rows_refuse(rows, "out of order");
	loader->last_key = key;
	return sf_rows_check(rows, "thread", v[0].number, 0, (int64_t)loader->threads.n) &&
	       add_times(rows, v[3].number, v[4].number > v[3].number ? v[4].number : v[3].number) &&
	       add_amount(rows, v[5].number) && (sf_vec_push(&loader->losses, loss) || sf_fail_memory(rows->err));
}

static bool add_hold(const struct sf_value *v, struct sf_rows *rows)
{
	struct sf_loader *loader = rows->arg;
	size_t n = loader->holds.n;
	struct sf_profile_hold hold = { (uint64_t)v[0].number, (uint64_t)v[1].number };

	if (n && hold.up_to_ns <= loader->holds.items[n - 1].up_to_ns)
		return sf_rows_refuse(rows, "out of order");
	return sf_vec_push(&loader->holds, hold) || sf_fail_memory(rows->err);
}

/* In the order in which they refer to each other. */
static const struct sf_table_form forms[] = {
	{ "session", "id", add_session, {
		{ "id", NUMBER, 1, 1 }, { "command", TEXT }, { "engine", TEXT }, { "host", TEXT },
		{ "version", TEXT }, { "start_unix_ns", NUMBER, ANY_TIME },
		{ "duration_ns", NUMBER, ANY_TIME }, { "rate_mhz", NUMBER, ANY_TIME },
		{ "blocked_rate_mhz", NUMBER, ANY_TIME }, { "complete", NUMBER, 0, 1 } } },
	{ "measures", "id", add_measure, {
		{ "id", NUMBER, 1, 1 }, { "name", TEXT }, { "unit", TEXT }, { "counted", false, true, ANY_TIME } } },
	{ "processes", "id", add_process, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "pid", NUMBER, INT32_MIN, INT32_MAX },
		{ "name", TEXT } } },
	{ "threads", "id", add_thread, {
		{ "id", NUMBER, 1, UINT32_MAX - 1 }, { "process", NUMBER, ANY_U32 },
		{ "tid", NUMBER, INT32_MIN, INT32_MAX }, { "name", TEXT },
		{ "start_ns", NUMBER, ANY_TIME }, { "end_ns", false, true, ANY_TIME },
		{ "cpu_counted_ns", NUMBER, ANY_TIME } } },
	{ "modules", "id", add_module, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "path", TEXT }, { "build_id", TEXT } } },
	{ "functions", "id", add_function, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "name", TEXT }, { "linkage", TEXT },
		{ "file", TEXT }, { "module", NUMBER, ANY_U32 } } },
	{ "frames", "id", add_frame, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "kind", NUMBER, 0, SF_N_KINDS - 1 },
		{ "module", NUMBER, ANY_U32 }, { "address", NUMBER, INT64_MIN, INT64_MAX },
		{ "via", NUMBER, 0, SF_N_VIAS - 1 }, { "label", TEXT } } },
	{ "frame_functions", "frame, seq", add_frame_function, {
		{ "frame", NUMBER, ANY_U32 }, { "seq", NUMBER, 0, SF_MAX_INLINED - 1 },
		{ "function", NUMBER, ANY_U32 }, { "line", NUMBER, ANY_U32 },
		{ "inlined", NUMBER, 0, 1 }, { "approximate", NUMBER, 0, 1 } } },
	{ "stacks", "id", add_stack, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "parent", NUMBER, ANY_U32 },
		{ "frame", NUMBER, ANY_U32 } } },
	{ "labels", "id", add_label, {
		{ "id", NUMBER, 1, UINT32_MAX - 1 }, { "key", TEXT }, { "value", TEXT } } },
	{ "notes", "id", add_note, {
		{ "id", NUMBER, 1, UINT32_MAX }, { "pid", NUMBER, INT32_MIN, INT32_MAX },
		{ "text", TEXT } } },
	{ "samples", "id", add_sample, {
		{ "id", NUMBER, INT64_MIN, INT64_MAX }, { "time_ns", NUMBER, ANY_TIME },
		{ "thread", NUMBER, ANY_U32 }, { "stack", NUMBER, ANY_U32 },
		{ "cpu_ns", NUMBER, ANY_TIME }, { "wall_ns", NUMBER, ANY_TIME }, { "amount", NUMBER, ANY_TIME },
		{ "ticks", NUMBER, ANY_U32 }, { "state", NUMBER, 0, SF_N_STATES - 1 },
		{ "end", NUMBER, 0, SF_N_ENDS - 1 }, { "unheld", NUMBER, 0, 1 },
		{ "syscall", NUMBER, INT16_MIN, INT16_MAX },
		{ "label", false, true, 1, UINT32_MAX - 1 }, { "second_label", false, true, 1, UINT32_MAX - 1 } } },
	{ "losses", "thread, cause", add_loss, {
		{ "thread", NUMBER, ANY_U32 }, { "cause", NUMBER, 0, SF_N_LOSSES - 1 },
		{ "ticks", NUMBER, ANY_U32 }, { "cpu_ns", NUMBER, ANY_TIME },
		{ "wall_ns", NUMBER, ANY_TIME }, { "amount", NUMBER, ANY_TIME } } },
	{ "holds", "up_to_ns", add_hold, {
		{ "up_to_ns", NUMBER, ANY_TIME }, { "count", NUMBER, 0, INT64_MAX >> 10 } } },
};

/* Once their functions are known, and before they are used. */
static bool finish_frames(struct sf_loader *loader, struct sf_error *err)
{
	const struct sf_profile *profile = loader->profile;

	if (loader->options.namer.name && !profile->complete && !profile->being_written &&
	    !sf_loader_name_frames(loader, &loader->options.namer, err))
		return false;
	return sf_loader_expand_frames(loader, err);
}

bool sf_loader_read_tables(struct sf_loader *loader, struct sf_error *err)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		/* Stacks are expanded as they come, so frames must be known before. */
		if (forms[i].add == add_stack && !finish_frames(loader, err))
			return false;
		loader->last_key = 0;
		if (!sf_rows_read(loader->db, loader->path, loader->profile->bytes_missing, &forms[i], loader, err))
			return false;
	}
	if (!loader->profile->command)
		return sf_fail(err, SF_E_INPUT, "%s is damaged: it has no session", loader->path);
	return true;
}
