/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for programs: one JSON object, documented in docs/report.md. Times are
 * nanoseconds. The tree is a flat list, because a path of 16,384 frames would be more
 * nesting than JSON parsers take.
 */
#include <inttypes.h>

#include "cli/report.h"
#include "export/json_text.h"

struct writer {
	const struct sf_report *report;
	FILE *out;
	bool failed;   /* memory ran out */
};

static void put_text(struct writer *writer, const char *key, const char *text)
{
	fprintf(writer->out, "\"%s\":", key);
	if (!sf_json_string(writer->out, text))
		writer->failed = true;
}

static void put_number(struct writer *writer, const char *key, uint64_t number)
{
	fprintf(writer->out, ",\"%s\":%" PRIu64, key, number);
}

static void put_function(struct writer *writer, uint32_t function)
{
	const struct sf_profile *profile = writer->report->profile;
	const struct sf_profile_function *row = &profile->functions[function];
	uint32_t module = row->module ? profile->modules[row->module - 1].path : 0;

	put_text(writer, "name", sf_aggregate_name(profile, function));
	putc(',', writer->out);
	put_text(writer, "module", sf_profile_string(profile, module));
	putc(',', writer->out);
	put_text(writer, "file", sf_profile_string(profile, row->file));
	putc(',', writer->out);
	put_text(writer, "kind", sf_kind_word(row->kind));
}

static void start_row(struct writer *writer, size_t i)
{
	fputs(i ? ",\n{" : "\n{", writer->out);
}

/* Left out where everything is exact, which is everywhere but in compiled managed code. */
static void put_approximate(struct writer *writer, uint64_t approximate_ns)
{
	if (approximate_ns)
		put_number(writer, "approximate_ns", approximate_ns);
}

static void put_functions(struct writer *writer)
{
	const struct sf_aggregate *sums = writer->report->aggregate;
	size_t n = sf_report_rows(writer->report, sums->n_functions, 0);

	for (size_t i = 0; i < n; i++) {
		start_row(writer, i);
		put_function(writer, sums->functions[i].function);
		put_number(writer, "self_ns", sums->functions[i].self_ns);
		put_number(writer, "total_ns", sums->functions[i].total_ns);
		put_number(writer, "samples", sums->functions[i].samples);
		put_approximate(writer, sums->functions[i].approximate_ns);
		putc('}', writer->out);
	}
}

static void put_tree(struct writer *writer)
{
	const struct sf_aggregate *sums = writer->report->aggregate;

	for (uint32_t i = 1; i < sums->n_tree; i++) {
		start_row(writer, i - 1);
		put_text(writer, "name",
			 sf_aggregate_name(writer->report->profile, sums->tree[i].function));
		put_number(writer, "id", i);
		put_number(writer, "parent", sums->tree[i].parent);
		put_number(writer, "self_ns", sums->tree[i].self_ns);
		put_number(writer, "total_ns", sums->tree[i].total_ns);
		put_approximate(writer, sums->tree[i].approximate_ns);
		putc('}', writer->out);
	}
}

static void put_share(struct writer *writer, const struct sf_share *row)
{
	put_number(writer, "ns", row->ns);
	put_number(writer, "cpu_ns", row->cpu_ns);
	put_number(writer, "wall_ns", row->wall_ns);
	put_number(writer, "samples", row->samples);
	put_number(writer, "ticks", row->ticks);
}

static void put_threads(struct writer *writer)
{
	const struct sf_profile *profile = writer->report->profile;
	const struct sf_shares *threads = &writer->report->aggregate->threads;
	size_t n = sf_report_rows(writer->report, threads->n, 0);

	for (size_t i = 0; i < n; i++) {
		const struct sf_profile_thread *thread = &profile->threads[threads->items[i].key];

		start_row(writer, i);
		put_text(writer, "name", sf_profile_string(profile, thread->name));
		putc(',', writer->out);
		put_text(writer, "process", sf_profile_string(profile, thread->process_name));
		fprintf(writer->out, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32, thread->pid,
			thread->tid);
		put_number(writer, "start_ns", thread->start_ns);
		put_number(writer, "end_ns", thread->end_ns);
		put_number(writer, "cpu_counted_ns", thread->cpu_counted_ns);
		put_share(writer, &threads->items[i]);
		putc('}', writer->out);
	}
}

static void put_states(struct writer *writer)
{
	const struct sf_shares *states = &writer->report->aggregate->states;

	for (size_t i = 0; i < states->n; i++) {
		start_row(writer, i);
		put_text(writer, "state", sf_state_word(states->items[i].key));
		put_share(writer, &states->items[i]);
		putc('}', writer->out);
	}
}

static void put_waits(struct writer *writer)
{
	const struct sf_shares *waits = &writer->report->aggregate->waits;
	size_t n = sf_report_rows(writer->report, waits->n, 0);

	for (size_t i = 0; i < n; i++) {
		start_row(writer, i);
		put_text(writer, "wait",
			 sf_aggregate_name(writer->report->profile, waits->items[i].key));
		put_share(writer, &waits->items[i]);
		putc('}', writer->out);
	}
}

/* The samples without a label are a row with two empty texts. */
static void put_labels(struct writer *writer)
{
	const struct sf_profile *profile = writer->report->profile;
	const struct sf_shares *labels = &writer->report->aggregate->labels;
	size_t n = sf_report_rows(writer->report, labels->n, 0);

	for (size_t i = 0; i < n && profile->n_labels; i++) {
		uint32_t key = labels->items[i].key;
		const struct sf_profile_label label =
			key ? profile->labels[key - 1] : (struct sf_profile_label){ 0 };

		start_row(writer, i);
		put_text(writer, "key", sf_profile_string(profile, label.key));
		putc(',', writer->out);
		put_text(writer, "value", sf_profile_string(profile, label.value));
		put_share(writer, &labels->items[i]);
		putc('}', writer->out);
	}
}

static void put_notes(struct writer *writer)
{
	const struct sf_profile *profile = writer->report->profile;

	fputs(",\n\"notes\":[", writer->out);
	for (uint32_t i = 0; i < profile->n_notes; i++) {
		start_row(writer, i);
		fprintf(writer->out, "\"pid\":%" PRId32 ",", profile->notes[i].pid);
		put_text(writer, "text", sf_profile_string(profile, profile->notes[i].text));
		putc('}', writer->out);
	}
	putc(']', writer->out);
}

static void put_ends(struct writer *writer)
{
	for (unsigned end = 0, n = 0; end < SF_N_ENDS; end++) {
		if (!writer->report->aggregate->ends[end])
			continue;
		start_row(writer, n++);
		put_text(writer, "end", sf_end_word(end));
		putc(',', writer->out);
		put_text(writer, "text", sf_end_text(end));
		put_number(writer, "ticks", writer->report->aggregate->ends[end]);
		putc('}', writer->out);
	}
}

static void put_losses(struct writer *writer)
{
	for (unsigned cause = 0, n = 0; cause < SF_N_LOSSES; cause++) {
		const struct sf_lost_total *lost = &writer->report->aggregate->lost_by[cause];

		if (!lost->ticks && !lost->cpu_ns)
			continue;
		start_row(writer, n++);
		put_text(writer, "cause", sf_loss_word(cause));
		putc(',', writer->out);
		put_text(writer, "text", sf_loss_text(cause));
		put_number(writer, "ticks", lost->ticks);
		put_number(writer, "cpu_ns", lost->cpu_ns);
		put_number(writer, "wall_ns", lost->wall_ns);
		putc('}', writer->out);
	}
}

static const struct {
	const char *key;
	void (*put)(struct writer *writer);
} sections[SF_N_SECTIONS] = {
	[SF_SECTION_FUNCTIONS] = { "functions", put_functions },
	[SF_SECTION_TREE] = { "tree", put_tree },
	[SF_SECTION_THREADS] = { "threads", put_threads },
	[SF_SECTION_STATES] = { "states", put_states },
	[SF_SECTION_WAITS] = { "waits", put_waits },
	[SF_SECTION_LABELS] = { "labels", put_labels },
	[SF_SECTION_ENDS] = { "ends", put_ends },
	[SF_SECTION_LOSSES] = { "losses", put_losses },
};

static void put_recording(struct writer *writer)
{
	const struct sf_profile *profile = writer->report->profile;

	fputs("\"recording\":{", writer->out);
	put_text(writer, "command", profile->command);
	putc(',', writer->out);
	put_text(writer, "engine", profile->engine);
	putc(',', writer->out);
	put_text(writer, "host", profile->host);
	putc(',', writer->out);
	put_text(writer, "version", profile->version);
	put_number(writer, "start_unix_ns", profile->start_unix_ns);
	put_number(writer, "duration_ns", profile->duration_ns);
	put_number(writer, "rate_mhz", profile->rate_mhz);
	put_number(writer, "blocked_rate_mhz", profile->blocked_rate_mhz);
	fprintf(writer->out, ",\"complete\":%s},\n", profile->complete ? "true" : "false");
}

static void put_sums(struct writer *writer)
{
	const struct sf_aggregate *sums = writer->report->aggregate;

	put_text(writer, "clock", sf_report_clock_word(sums->clock));
	put_number(writer, "total_ns", sums->total_ns);
	put_approximate(writer, sums->approximate_ns);
	put_number(writer, "samples", sums->samples);
	put_number(writer, "ticks", sums->sample_ticks + sums->lost.ticks);
	put_number(writer, "sample_ticks", sums->sample_ticks);
	put_number(writer, "unheld_ticks", sums->unheld_ticks);
	put_number(writer, "lost_ticks", sums->lost.ticks);
	put_number(writer, "cpu_seen_ns", sums->cpu_ns);
	put_number(writer, "cpu_lost_ns", sums->lost.cpu_ns);
	put_number(writer, "cpu_counted_ns", sums->cpu_counted_ns);
	put_number(writer, "wall_ns", sums->wall_ns);
	put_number(writer, "holds", sums->holds);
	put_number(writer, "hold_p50_ns", sums->hold_p50_ns);
	put_number(writer, "hold_p99_ns", sums->hold_p99_ns);
	put_number(writer, "hold_max_ns", sums->hold_max_ns);
}

bool sf_report_json(const struct sf_report *report, FILE *out, struct sf_error *err)
{
	struct writer writer = { .report = report, .out = out };

	fputs("{\"format\":1,", out);
	put_recording(&writer);
	put_sums(&writer);
	for (unsigned section = 0; section < SF_N_SECTIONS; section++) {
		if (report->only >= 0 && (unsigned)report->only != section)
			continue;
		fprintf(out, ",\n\"%s\":[", sections[section].key);
		sections[section].put(&writer);
		putc(']', out);
	}
	put_notes(&writer);
	fputs("}\n", out);
	return !writer.failed || sf_fail_memory(err);
}
