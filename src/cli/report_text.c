/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people: text in the width of the terminal; in a pipe or a file no name is cut. */
#include <inttypes.h>
#include <string.h>

#include "cli/report.h"

#define TEXT_ROWS 20

static void print_title(const struct sf_output *output, const char *title, const char *columns)
{
	fputc('\n', output->file);
	sf_print_in(output, SF_BOLD, "%s\n", title);
	sf_print_in(output, SF_DIM, "%s\n", columns);
}

/* The title of a table of weights and samples. */
static void print_share_title(const struct sf_report *report, const struct sf_output *output, const char *title, const char *what)
{
	char columns[80];

	snprintf(columns, sizeof(columns), "       %%  %9.20s    samples  %s", sf_report_unit(report), what);
	print_title(output, title, columns);
}

static void print_more(const struct sf_output *output, size_t n, size_t shown)
{
	char count[32];

	if (shown < n)
		sf_print_in(output, SF_DIM, "  and %s more: --top %zu\n", sf_format_count(count, n - shown), n);
}

/* The first column of a row: large shares stand out. */
static void print_percent(const struct sf_output *output, uint64_t part, uint64_t whole)
{
	double percent = sf_report_percent(part, whole);

	putc(' ', output->file);
	sf_print_in(output, percent >= 10 ? SF_RED : percent >= 2 ? SF_YELLOW : SF_PLAIN, "%7.1f", percent);
}

static int columns_of(const char *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += (*text & 0xc0) != 0x80;
	return columns;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "name  module"; the name matters more, so the module is there when both fit whole. */
static void print_name(const struct sf_output *output, const char *name, const char *mark,
		       const char *module, int used)
{
	int room = output->width - used - (int)strlen(mark);

	sf_print_cut(output->file, name, room);
	fputs(mark, output->file);
	if (*module && columns_of(name) + 2 + columns_of(module) <= room)
		sf_print_in(output, SF_DIM, "  %s", module);
	putc('\n', output->file);
}

static const char *module_of(const struct sf_profile *profile, uint32_t function)
{
	uint32_t module = profile->functions[function].module;

	/* An address without a name says its module already. */
	if (!function || !module || profile->functions[function].linkage == 0)
		return "";
	return base_name(sf_profile_string(profile, profile->modules[module - 1].path));
}

static void print_functions(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	size_t n = sf_report_rows(report, sums->n_functions, TEXT_ROWS);
	char time[32];

	print_title(output, "FUNCTIONS", "  self %  total %       self  function");
	for (size_t i = 0; i < n; i++) {
		const struct sf_function_total *row = &sums->functions[i];

		print_percent(output, row->self_ns, sums->total_ns);
		fprintf(output->file, "  %7.1f  %9s  ",
			sf_report_percent(row->total_ns, sums->total_ns),
			sf_report_weight(report, time, row->self_ns));
		print_name(output, sf_aggregate_name(report->profile, row->function),
			   sf_report_mark(row->approximate_ns),
			   module_of(report->profile, row->function), 30);
	}
	print_more(output, sums->n_functions, n);
}

/* Those of one name are one row. */
static bool has_several_processes(const struct sf_aggregate *sums)
{
	return sums->n_processes > 1 || (sums->n_processes && sums->processes[0].n_processes > 1);
}

/* A recording of one process has no such table, unless it was asked for. */
static void print_processes(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	const size_t n = sf_report_rows(report, sums->n_processes, TEXT_ROWS);
	char time[32], samples[32], beside[48];

	if (report->only < 0 && !has_several_processes(sums))
		return;
	print_share_title(report, output, "PROCESSES", "process");
	for (size_t i = 0; i < n; i++) {
		const struct sf_process_total *row = &sums->processes[i];

		print_percent(output, row->ns, sums->total_ns);
		fprintf(output->file, "  %9s  %9s  ", sf_report_weight(report, time, row->ns), sf_format_count(samples, row->samples));
		if (row->n_processes > 1)
			snprintf(beside, sizeof(beside), "%" PRIu32 " processes", row->n_processes);
		else
			snprintf(beside, sizeof(beside), "pid %" PRId32, row->pid);
		print_name(output, sf_profile_string(report->profile, row->name), "", beside, 32);
	}
	print_more(output, sums->n_processes, n);
}

static void print_share(const struct sf_report *report, const struct sf_output *output, uint64_t weight, uint64_t whole,
			uint64_t n_samples, const char *name, const char *beside)
{
	char amount[32], samples[32];

	print_percent(output, weight, whole);
	fprintf(output->file, "  %9s  %9s  ", sf_report_weight(report, amount, weight), sf_format_count(samples, n_samples));
	print_name(output, name, "", beside, 32);
}

/* "tid 102", and where there are several processes, whose thread it is. */
static void print_thread_name(const struct sf_report *report, const struct sf_output *output, const struct sf_profile_thread *thread,
			      int used)
{
	const char *name = sf_profile_string(report->profile, thread->name);
	char id[96];
	int tid_size = snprintf(id, sizeof(id), "tid %" PRId32, thread->tid);

	if (has_several_processes(report->aggregate) && thread->tid != thread->pid)
		snprintf(id + tid_size, sizeof(id) - (size_t)tid_size, " of %.40s (pid %" PRId32 ")",
			 sf_profile_string(report->profile, thread->process_name), thread->pid);
	if (columns_of(name) + 2 + columns_of(id) > output->width - used)
		id[tid_size] = 0;
	print_name(output, name, "", id, used);
}

/* The kernel counts the CPU time of each thread, and no event of it. */
static void print_thread_figures(const struct sf_report *report, const struct sf_output *output, const struct sf_share *row)
{
	char weight[32], seen[32], counted[32];

	print_percent(output, row->ns, report->aggregate->total_ns);
	fprintf(output->file, "  %9s", sf_report_weight(report, weight, row->ns));
	if (report->aggregate->clock == SF_CLOCK_EVENT)
		fprintf(output->file, "  %9s  ", sf_format_count(seen, row->samples));
	else
		fprintf(output->file, "  %9s  %9s  ", sf_format_time(seen, row->cpu_ns),
			sf_report_counted(report, counted, row));
}

static void print_threads(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	const bool is_event = sums->clock == SF_CLOCK_EVENT;
	const size_t n = sf_report_rows(report, sums->threads.n, TEXT_ROWS);
	char number[32];

	if (is_event)
		print_share_title(report, output, "THREADS", "thread");
	else
		print_title(output, "THREADS", "       %       time   cpu seen    counted  thread");
	for (size_t i = 0; i < n; i++) {
		print_thread_figures(report, output, &sums->threads.items[i]);
		print_thread_name(report, output, &report->profile->threads[sums->threads.items[i].key], is_event ? 32 : 43);
	}
	print_more(output, sums->threads.n, n);
	if (sums->n_unsampled)
		fprintf(output->file, "  %s without a sample\n", sf_format_count(number, sums->n_unsampled));
}

/*
 * States and waits are about elapsed time, whatever the clock: no CPU time passes in a wait. Where there are no times,
 * about events.
 */
static void print_elapsed(const struct sf_report *report, const struct sf_output *output,
			  const struct sf_share *row, const char *name, const char *beside)
{
	const struct sf_aggregate *sums = report->aggregate;
	char time[32], samples[32];

	if (report->profile->measure.is_all) {
		print_share(report, output, row->ns, sums->total_ns, row->samples, name, beside);
		return;
	}
	print_percent(output, row->wall_ns, sums->wall_ns);
	fprintf(output->file, "  %9s  %9s  ", sf_format_time(time, row->wall_ns), sf_format_count(samples, row->samples));
	print_name(output, name, "", beside, 32);
}

static void print_elapsed_title(const struct sf_report *report, const struct sf_output *output, const char *title, const char *what)
{
	char text[80];

	if (report->profile->measure.is_all) {
		print_share_title(report, output, title, what);
		return;
	}
	snprintf(text, sizeof(text), "       %%       time    samples  %s", what);
	fputc('\n', output->file);
	sf_print_in(output, SF_BOLD, "%s, by elapsed time\n", title);
	sf_print_in(output, SF_DIM, "%s\n", text);
}

static void print_states(const struct sf_report *report, const struct sf_output *output)
{
	static const char *const texts[] = {
#define X(name, word, text) [SF_STATE_##name] = text,
		SF_STATES(X)
#undef X
	};
	const struct sf_shares *states = &report->aggregate->states;

	if (report->profile->measure.is_all && report->only < 0)
		return; /* a thread runs when an event happens */
	print_elapsed_title(report, output, "STATES", "state");
	for (size_t i = 0; i < states->n; i++)
		print_elapsed(report, output, &states->items[i],
			      sf_state_word(states->items[i].key), texts[states->items[i].key]);
}

static void print_waits(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_shares *waits = &report->aggregate->waits;
	size_t n = sf_report_rows(report, waits->n, TEXT_ROWS);

	if (waits->n == 0 && report->only < 0)
		return;
	print_elapsed_title(report, output, "WAITS", "waiting for");
	for (size_t i = 0; i < n; i++)
		print_elapsed(report, output, &waits->items[i],
			      sf_aggregate_name(report->profile, waits->items[i].key), "");
	print_more(output, waits->n, n);
}

/* Labels are sorted by their time. */
static size_t count_with_time(const struct sf_shares *labels)
{
	size_t n = 0;

	while (n < labels->n && labels->items[n].ns)
		n++;
	return n;
}

/* By the clock that was chosen: a label says on whose behalf, not what the thread did. */
static void print_labels(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_shares *labels = &report->aggregate->labels;
	const struct sf_profile *profile = report->profile;
	const size_t n_with_time = count_with_time(labels), n = sf_report_rows(report, n_with_time, TEXT_ROWS);
	char name[1024], count[32];
	static const char *const without[] = {
		[SF_CLOCK_CPU] = "without time by this clock: --clock wall",
		[SF_CLOCK_WALL] = "without time",
		[SF_CLOCK_OFFCPU] = "without time by this clock: --clock wall",
		[SF_CLOCK_EVENT] = "without events",
	};

	if (profile->n_labels == 0 && report->only < 0)
		return;
	print_share_title(report, output, "LABELS", "label");
	for (size_t i = 0; i < n; i++) {
		const struct sf_share *row = &labels->items[i];
		const struct sf_profile_label *label =
			row->key ? &profile->labels[row->key - 1] : NULL;

		snprintf(name, sizeof(name), "%s=%s", /* as --label takes it */
			 label ? sf_profile_string(profile, label->key) : "",
			 label ? sf_profile_string(profile, label->value) : "");
		print_share(report, output, row->ns, report->aggregate->total_ns, row->samples,
			    label ? name : "(no label)", "");
	}
	print_more(output, n_with_time, n);
	if (n_with_time < labels->n)
		sf_print_in(output, SF_DIM, "  and %s %s\n", sf_format_count(count, labels->n - n_with_time),
			    without[report->aggregate->clock]);
}

/* `number`: part, as it is to be shown. */
static void print_counted(const struct sf_output *output, uint64_t part, uint64_t whole, const char *number,
			  const char *word, const char *text)
{
	fprintf(output->file, " %7.1f  %9s  %-10s  ", sf_report_percent(part, whole), number, word);
	sf_print_wrapped(output->file, text, strlen(text), 33, 33);
}

static void print_ends(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	char ticks[32];

	print_title(output, "STACKS, by how they end", "       %      ticks  end");
	for (unsigned end = 0; end < SF_N_ENDS; end++) {
		if (sums->ends[end])
			print_counted(output, sums->ends[end], sums->sample_ticks, sf_format_count(ticks, sums->ends[end]),
				      sf_end_word(end), sf_end_text(end));
	}
}

/* The kernel counts events for which there was no tick: of events, a loss is a number of these. */
static void print_lost_events(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	char columns[80], amount[32];

	snprintf(columns, sizeof(columns), "       %%  %9.20s  cause", sf_report_unit(report));
	print_title(output, "LOSSES", columns);
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++) {
		if (sums->lost_by[cause].amount)
			print_counted(output, sums->lost_by[cause].amount, sums->total_ns,
				      sf_report_weight(report, amount, sums->lost_by[cause].amount), sf_loss_word(cause),
				      sf_loss_text(cause));
	}
}

static void print_losses(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	char ticks[32], cpu[32];

	if (!sums->lost.ticks && !sums->lost.cpu_ns && !sums->lost.amount && report->only < 0)
		return; /* the header says that none were lost */
	if (sums->clock == SF_CLOCK_EVENT && sums->lost.amount) {
		print_lost_events(report, output);
		return;
	}
	print_title(output, "LOSSES", "       %      ticks   cpu time  cause");
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++) {
		const struct sf_lost_total *lost = &sums->lost_by[cause];

		if (!lost->ticks && !lost->cpu_ns && !lost->amount)
			continue;
		fprintf(output->file, " %7.1f  %9s  %9s  %-10s  ", sf_report_percent(lost->ticks, sums->sample_ticks + sums->lost.ticks),
			sf_format_count(ticks, lost->ticks), sf_format_time(cpu, lost->cpu_ns), sf_loss_word(cause));
		sf_print_wrapped(output->file, sf_loss_text(cause), strlen(sf_loss_text(cause)), 44, 44);
	}
}

static void (*const sections[SF_N_SECTIONS])(const struct sf_report *report,
					     const struct sf_output *output) = {
	[SF_SECTION_FUNCTIONS] = print_functions, [SF_SECTION_TREE] = sf_report_tree,
	[SF_SECTION_PROCESSES] = print_processes,
	[SF_SECTION_THREADS] = print_threads,     [SF_SECTION_STATES] = print_states,
	[SF_SECTION_WAITS] = print_waits,         [SF_SECTION_ENDS] = print_ends,
	[SF_SECTION_LOSSES] = print_losses,       [SF_SECTION_LABELS] = print_labels,
};

static void print_notes(const struct sf_profile *profile, const struct sf_output *output)
{
	char about[32] = "";

	for (uint32_t i = 0; i < profile->n_notes; i++) {
		const char *text = sf_profile_string(profile, profile->notes[i].text);
		int used = 6;

		if (profile->notes[i].pid)
			used += snprintf(about, sizeof(about), "pid %" PRId32 ": ",
					 profile->notes[i].pid);
		fprintf(output->file, "%snote: %s", i ? "" : "\n",
			profile->notes[i].pid ? about : "");
		sf_print_wrapped(output->file, text, strlen(text), used, 6);
	}
}

void sf_report_text(const struct sf_report *report, const struct sf_output *output)
{
	struct sf_output bounded = *output;

	if (bounded.width < 60)
		bounded.width = 60;
	sf_report_header(report, &bounded);
	for (unsigned section = 0; section < SF_N_SECTIONS; section++) {
		if (report->only < 0 || (unsigned)report->only == section)
			sections[section](report, &bounded);
	}
	sf_report_footnotes(report, &bounded);
	print_notes(report->profile, &bounded);
}
