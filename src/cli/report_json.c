/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for programs: one JSON object, documented in docs/report.md. Times are nanoseconds, in members that end
 * with _ns. By the clock of an event these members are amounts, and end with _amount. The tree is a flat list, because
 * a path of 16,384 frames would be more nesting than JSON parsers take. Each row is written before the next one is
 * made.
 */
#include "cli/report.h"
#include "export/json_text.h"

struct writer {
	const struct sf_report *report;
	const struct sf_profile *profile;
	const struct sf_aggregate *sums;
	FILE *out;
	size_t n_rows;   /* of this section, so far */
	bool failed;     /* memory ran out */
};

static void put_row(struct writer *writer, struct json_object *row)
{
	fputs(writer->n_rows++ ? ",\n" : "\n", writer->out);
	if (!sf_json_take(writer->out, row))
		writer->failed = true;
}

/* Behind the name of what is by the clock. */
static const char *suffix(const struct writer *writer)
{
	return writer->sums->clock == SF_CLOCK_EVENT ? "amount" : "ns";
}

/* "self" by the clock: "self_ns", or "self_amount". */
static void add_weight(const struct writer *writer, struct json_object *row, const char *key, uint64_t weight)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s%s", key, *key ? "_" : "", suffix(writer));
	sf_json_number(row, name, weight);
}

/* Left out where everything is exact, which is everywhere but in compiled managed code. */
static void add_approximate(const struct writer *writer, struct json_object *row, uint64_t approximate_ns)
{
	if (approximate_ns)
		add_weight(writer, row, "approximate", approximate_ns);
}

static void put_functions(struct writer *writer)
{
	const struct sf_profile *profile = writer->profile;
	size_t n = sf_report_rows(writer->report, writer->sums->n_functions, 0);

	for (size_t i = 0; i < n; i++) {
		const struct sf_function_total *total = &writer->sums->functions[i];
		const struct sf_profile_function *function = &profile->functions[total->function];
		uint32_t module = function->module ? profile->modules[function->module - 1].path : 0;
		struct json_object *row = json_object_new_object();

		sf_json_text(row, "name", sf_aggregate_name(profile, total->function));
		sf_json_text(row, "module", sf_profile_string(profile, module));
		sf_json_text(row, "file", sf_profile_string(profile, function->file));
		sf_json_text(row, "kind", sf_kind_word(function->kind));
		add_weight(writer, row, "self", total->self_ns);
		add_weight(writer, row, "total", total->total_ns);
		sf_json_number(row, "samples", total->samples);
		add_approximate(writer, row, total->approximate_ns);
		put_row(writer, row);
	}
}

static void put_tree(struct writer *writer)
{
	for (uint32_t i = 1; i < writer->sums->tree.n; i++) {
		const struct sf_tree_node *node = &writer->sums->tree.nodes[i];
		struct json_object *row = json_object_new_object();

		sf_json_text(row, "name", sf_aggregate_name(writer->profile, node->function));
		sf_json_number(row, "id", i);
		sf_json_number(row, "parent", node->parent);
		add_weight(writer, row, "self", node->self_ns);
		add_weight(writer, row, "total", node->total_ns);
		add_approximate(writer, row, node->approximate_ns);
		if (node->guessed_ns)
			add_weight(writer, row, "guessed", node->guessed_ns);
		put_row(writer, row);
	}
}

/* Puts a row for each share, which begins with what `add` says of its key. */
static void put_shares(struct writer *writer, const struct sf_shares *shares,
		       void (*add)(struct json_object *row, const struct sf_profile *profile, uint32_t key))
{
	size_t n = sf_report_rows(writer->report, shares->n, 0);

	for (size_t i = 0; i < n; i++) {
		const struct sf_share *share = &shares->items[i];
		struct json_object *row = json_object_new_object();

		add(row, writer->profile, share->key);
		add_weight(writer, row, "", share->ns);
		sf_json_number(row, "cpu_ns", share->cpu_ns);
		sf_json_number(row, "wall_ns", share->wall_ns);
		sf_json_number(row, "samples", share->samples);
		sf_json_number(row, "ticks", share->ticks);
		put_row(writer, row);
	}
}

static void add_thread(struct json_object *row, const struct sf_profile *profile, uint32_t key)
{
	const struct sf_profile_thread *thread = &profile->threads[key];

	sf_json_text(row, "name", sf_profile_string(profile, thread->name));
	sf_json_text(row, "process", sf_profile_string(profile, thread->process_name));
	json_object_object_add(row, "pid", json_object_new_int(thread->pid));
	json_object_object_add(row, "tid", json_object_new_int(thread->tid));
	sf_json_number(row, "start_ns", thread->start_ns);
	sf_json_number(row, "end_ns", thread->end_ns);
	sf_json_number(row, "cpu_counted_ns", thread->cpu_counted_ns);
}

static void add_state(struct json_object *row, const struct sf_profile *profile, uint32_t key)
{
	(void)profile;
	sf_json_text(row, "state", sf_state_word(key));
}

static void add_wait(struct json_object *row, const struct sf_profile *profile, uint32_t key)
{
	sf_json_text(row, "wait", sf_aggregate_name(profile, key));
}

/* The samples without a label are a row with two empty texts. */
static void add_label(struct json_object *row, const struct sf_profile *profile, uint32_t key)
{
	const struct sf_profile_label label = key ? profile->labels[key - 1] : (struct sf_profile_label){ 0 };

	sf_json_text(row, "key", sf_profile_string(profile, label.key));
	sf_json_text(row, "value", sf_profile_string(profile, label.value));
}

static void put_processes(struct writer *writer)
{
	const struct sf_aggregate *sums = writer->sums;
	const size_t n = sf_report_rows(writer->report, sums->n_processes, 0);

	for (size_t i = 0; i < n; i++) {
		const struct sf_process_total *total = &sums->processes[i];
		struct json_object *row = json_object_new_object();

		sf_json_text(row, "name", sf_profile_string(writer->profile, total->name));
		json_object_object_add(row, "pid", total->n_processes > 1 ? NULL : json_object_new_int(total->pid));
		sf_json_number(row, "processes", total->n_processes);
		sf_json_number(row, "threads", total->n_threads);
		add_weight(writer, row, "", total->ns);
		sf_json_number(row, "cpu_ns", total->cpu_ns);
		sf_json_number(row, "wall_ns", total->wall_ns);
		sf_json_number(row, "samples", total->samples);
		sf_json_number(row, "cpu_counted_ns", total->cpu_counted_ns);
		put_row(writer, row);
	}
}

static void put_threads(struct writer *writer)
{
	put_shares(writer, &writer->sums->threads, add_thread);
}

static void put_states(struct writer *writer)
{
	put_shares(writer, &writer->sums->states, add_state);
}

static void put_waits(struct writer *writer)
{
	put_shares(writer, &writer->sums->waits, add_wait);
}

static void put_labels(struct writer *writer)
{
	if (writer->profile->n_labels)
		put_shares(writer, &writer->sums->labels, add_label);
}

static void put_ends(struct writer *writer)
{
	for (unsigned end = 0; end < SF_N_ENDS; end++) {
		struct json_object *row;

		if (!writer->sums->ends[end])
			continue;
		row = json_object_new_object();
		sf_json_text(row, "end", sf_end_word(end));
		sf_json_text(row, "text", sf_end_text(end));
		sf_json_number(row, "ticks", writer->sums->ends[end]);
		put_row(writer, row);
	}
}

static void put_losses(struct writer *writer)
{
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++) {
		const struct sf_lost_total *lost = &writer->sums->lost_by[cause];
		struct json_object *row;

		if (!lost->ticks && !lost->cpu_ns && !lost->amount)
			continue;
		row = json_object_new_object();
		sf_json_text(row, "cause", sf_loss_word(cause));
		sf_json_text(row, "text", sf_loss_text(cause));
		sf_json_number(row, "ticks", lost->ticks);
		sf_json_number(row, "cpu_ns", lost->cpu_ns);
		sf_json_number(row, "wall_ns", lost->wall_ns);
		if (writer->profile->measure.name)
			sf_json_number(row, "amount", lost->amount);
		put_row(writer, row);
	}
}

static void put_notes(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->profile->n_notes; i++)
		put_row(writer, sf_json_note(writer->profile, &writer->profile->notes[i]));
}

static const struct {
	const char *key;
	void (*put)(struct writer *writer);
} sections[SF_N_SECTIONS] = {
	[SF_SECTION_FUNCTIONS] = { "functions", put_functions },
	[SF_SECTION_TREE] = { "tree", put_tree },
	[SF_SECTION_PROCESSES] = { "processes", put_processes },
	[SF_SECTION_THREADS] = { "threads", put_threads },
	[SF_SECTION_STATES] = { "states", put_states },
	[SF_SECTION_WAITS] = { "waits", put_waits },
	[SF_SECTION_LABELS] = { "labels", put_labels },
	[SF_SECTION_ENDS] = { "ends", put_ends },
	[SF_SECTION_LOSSES] = { "losses", put_losses },
};

/* The event that samples count: absent in a recording of times. */
static void put_measure(struct writer *writer)
{
	const struct sf_profile_measure *measure = &writer->profile->measure;
	struct json_object *json;

	if (!measure->name)
		return;
	json = sf_json_measure(measure);
	sf_json_number(json, "seen", writer->sums->amount);
	sf_json_number(json, "lost", writer->sums->lost.amount);
	fputs(",\n\"measure\":", writer->out);
	if (!sf_json_take(writer->out, json))
		writer->failed = true;
}

static void put_weight(struct writer *writer, const char *key, uint64_t weight)
{
	fprintf(writer->out, ",\"%s_%s\":%" PRIu64, key, suffix(writer), weight);
}

/* Writes the sums as the first members of the report. */
static void put_sums(struct writer *writer)
{
	const struct sf_aggregate *sums = writer->sums;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "samples", sums->samples },
		{ "ticks", sums->sample_ticks + sums->lost.ticks },
		{ "sample_ticks", sums->sample_ticks },
		{ "unheld_ticks", sums->unheld_ticks },
		{ "lost_ticks", sums->lost.ticks },
		{ "cpu_seen_ns", sums->cpu_ns },
		{ "cpu_lost_ns", sums->lost.cpu_ns },
		{ "cpu_counted_ns", sums->cpu_counted_ns },
		{ "wall_ns", sums->wall_ns },
		{ "holds", sums->holds },
		{ "hold_p50_ns", sums->hold_p50_ns },
		{ "hold_p99_ns", sums->hold_p99_ns },
		{ "hold_max_ns", sums->hold_max_ns },
	};

	put_measure(writer);
	fprintf(writer->out, ",\n\"clock\":\"%s\"", sf_clock_word(sums->clock));
	put_weight(writer, "total", sums->total_ns);
	put_weight(writer, "unseen", sums->unseen_ns);
	if (sums->managed_ns)
		put_weight(writer, "managed", sums->managed_ns);
	if (sums->approximate_ns)
		put_weight(writer, "approximate", sums->approximate_ns);
	if (sums->tree.guessed_ns)
		put_weight(writer, "guessed", sums->tree.guessed_ns);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		fprintf(writer->out, ",\"%s\":%" PRIu64, numbers[i].key, numbers[i].value);
}

static void put_section(struct writer *writer, const char *key, void (*put)(struct writer *writer))
{
	fprintf(writer->out, ",\n\"%s\":[", key);
	writer->n_rows = 0;
	put(writer);
	putc(']', writer->out);
}

bool sf_report_json(const struct sf_report *report, FILE *out, struct sf_error *err)
{
	struct writer writer = { .report = report, .profile = report->profile,
				 .sums = report->aggregate, .out = out };

	fputs("{\"format\":1,\"recording\":", out);
	writer.failed = !sf_json_take(out, sf_json_recording(report->profile));
	put_sums(&writer);
	for (int section = 0; section < SF_N_SECTIONS; section++) {
		if (report->only < 0 || report->only == section)
			put_section(&writer, sections[section].key, sections[section].put);
	}
	put_section(&writer, "notes", put_notes);
	fputs("}\n", out);
	return !writer.failed || sf_fail_memory(err);
}
