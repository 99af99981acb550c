/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a report for people. It shows the target, the time and the manner of the recording, and the accounts of
 * its ticks and of CPU time. It also shows the times for which threads were held, and the clock of the tables below.
 */
#include <string.h>
#include <time.h>

#include "cli/report.h"

#define WHOLE_CPU_PERCENT 95 /* below it, the cpu line is worth a look */

static void print_label(const struct sf_output *output, const char *label)
{
	fputs("  ", output->file);
	sf_print_in(output, SF_DIM, "%-8s", label);
	fputs("  ", output->file);
}

char *sf_report_weight(const struct sf_report *report, char ret[32], uint64_t weight)
{
	if (report->aggregate->clock != SF_CLOCK_EVENT)
		return sf_format_time(ret, weight);
	return strcmp(report->profile->measure.unit, "bytes") == 0 ? sf_format_bytes(ret, weight) : sf_format_count(ret, weight);
}

char *sf_report_counted(const struct sf_report *report, char ret[32], const struct sf_share *thread)
{
	const struct sf_profile *profile = report->profile;
	const uint64_t counted_ns = profile->threads[thread->key].cpu_counted_ns;

	if (!counted_ns && (thread->cpu_ns || profile->by_label || !profile->complete))
		return strcpy(ret, "-");
	return sf_format_time(ret, counted_ns);
}

/* "199 Hz", "0.5 Hz"; rates are in thousandths. */
static char *format_rate(char ret[32], uint64_t rate_mhz)
{
	snprintf(ret, 32, "%.6g Hz", (double)rate_mhz / 1000);
	return ret;
}

static void print_when(const struct sf_profile *profile, const struct sf_output *output)
{
	char date[48] = "", duration[32];
	time_t seconds = (time_t)(profile->start_unix_ns / 1000000000);
	struct tm parts;

	if (gmtime_r(&seconds, &parts))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC, ", &parts);
	print_label(output, "when");
	fprintf(output->file, "%s%s", date, sf_format_time(duration, profile->duration_ns));
	if (*profile->host) { /* a stream does not say */
		fprintf(output->file, " on ");
		sf_print_cut(output->file, profile->host, 32);
	}
	putc('\n', output->file);
}

static void print_how(const struct sf_profile *profile, const struct sf_output *output)
{
	char rate[32], blocked_rate[32];

	print_label(output, "how");
	sf_print_cut(output->file, profile->engine, 20);
	if (profile->measure.is_all) {
		fputs(", by ", output->file);
		sf_print_cut(output->file, profile->measure.name, 60);
		putc('\n', output->file);
		return;
	}
	fprintf(output->file, " at %s", format_rate(rate, profile->rate_mhz));
	if (profile->blocked_rate_mhz)
		fprintf(output->file, ", blocked threads at %s",
			format_rate(blocked_rate, profile->blocked_rate_mhz));
	putc('\n', output->file);
}

/* All below is about these samples only. */
static void print_chosen(const struct sf_report *report, const struct sf_output *output)
{
	if (report->threads) {
		print_label(output, "threads");
		fputs("matching ", output->file);
		sf_print_cut(output->file, report->threads, output->width - 21);
		putc('\n', output->file);
	}
	if (report->label) {
		print_label(output, "label");
		sf_print_cut(output->file, report->label, output->width - 12);
		putc('\n', output->file);
	}
}

static void print_ticks(const struct sf_aggregate *sums, const struct sf_output *output)
{
	char all[32], ticks[32], samples[32], lost[32];

	print_label(output, "ticks");
	fprintf(output->file, "%s = %s in %s sample%s + %s%s lost%s\n",
		sf_format_count(all, sums->sample_ticks + sums->lost.ticks),
		sf_format_count(ticks, sums->sample_ticks),
		sf_format_count(samples, sums->samples), sums->samples == 1 ? "" : "s",
		sums->lost.ticks ? sf_colour(output, SF_YELLOW) : "",
		sf_format_count(lost, sums->lost.ticks),
		sums->lost.ticks ? sf_colour(output, SF_PLAIN) : "");
}

/*
 * Whether the kernel's count is one of all threads. It is recorded at a thread's end, and so is missing for some where stillframe
 * was killed, or still records. The kernel counts no time by label.
 */
static bool is_counted(const struct sf_report *report)
{
	const struct sf_aggregate *sums = report->aggregate;

	return !report->profile->by_label &&
	       (report->profile->complete || (sums->cpu_counted_ns && sums->cpu_counted_ns >= sums->cpu_ns));
}

static void print_cpu(const struct sf_aggregate *sums, bool counted_all, const struct sf_output *output)
{
	double percent = sf_report_percent(sums->cpu_ns, sums->cpu_counted_ns);
	bool whole = percent >= WHOLE_CPU_PERCENT || !sums->cpu_counted_ns;
	char seen[32], counted[32];

	print_label(output, "cpu");
	fprintf(output->file, "%s seen, ", sf_format_time(seen, sums->cpu_ns));
	if (counted_all && !sums->cpu_counted_ns && !sums->cpu_ns)
		fputs("0 ns counted by the kernel\n", output->file); /* nothing ran */
	else if (!sums->cpu_counted_ns || !counted_all)
		fprintf(output->file, "not counted by the kernel%s\n", sums->cpu_counted_ns ? " for all threads" : "");
	else
		fprintf(output->file, "%s counted by the kernel (%s%.1f %%%s)\n",
			sf_format_time(counted, sums->cpu_counted_ns),
			sf_colour(output, whole ? SF_GREEN : SF_YELLOW), percent,
			sf_colour(output, SF_PLAIN));
}

/* How much of the measure samples stand for, beside the count. */
static void print_measure(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_profile_measure *measure = &report->profile->measure;
	const uint64_t seen = report->aggregate->amount;
	const double percent = measure->counted ? sf_report_percent(seen, measure->counted) : 100;
	char number[32];

	print_label(output, measure->unit);
	fprintf(output->file, "%s ", sf_format_count(number, seen));
	sf_print_cut(output->file, measure->name, 60);
	if (measure->is_counted)
		fprintf(output->file, " seen, %s counted (%s%.1f %%%s)\n", sf_format_count(number, measure->counted),
			sf_colour(output, percent >= WHOLE_CPU_PERCENT ? SF_GREEN : SF_YELLOW), percent,
			sf_colour(output, SF_PLAIN));
	else
		fputs(" seen, not counted to the end\n", output->file);
}

static void print_unseen(const struct sf_aggregate *sums, const struct sf_output *output)
{
	const uint64_t whole_ns = sf_cpu_whole(sums->cpu_ns, sums->lost.cpu_ns, sums->cpu_counted_ns);
	uint64_t by[SF_N_LOSSES];
	char text[400];

	if (!sf_unseen_is_notable(sums->lost.cpu_ns, whole_ns))
		return;
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++)
		by[cause] = sums->lost_by[cause].cpu_ns;
	snprintf(text, sizeof(text), "%.1f %% " SF_UNSEEN_HINT "%s", sf_report_percent(sums->lost.cpu_ns, whole_ns),
		 sf_unseen_advice(by, sums->lost.cpu_ns));
	print_label(output, "warning");
	fputs(sf_colour(output, SF_YELLOW), output->file);
	sf_print_wrapped(output->file, text, strlen(text), 12, 12);
	fputs(sf_colour(output, SF_PLAIN), output->file);
}

static void print_holds(const struct sf_aggregate *sums, const struct sf_output *output)
{
	char count[32], half[32], most[32], longest[32];

	print_label(output, "holds");
	if (!sums->holds)
		fprintf(output->file, "none: no thread was held\n");
	else
		fprintf(output->file, "%s: half within %s, 99 %% within %s, all within %s\n",
			sf_format_count(count, sums->holds),
			sf_format_time(half, sums->hold_p50_ns),
			sf_format_time(most, sums->hold_p99_ns),
			sf_format_time(longest, sums->hold_max_ns));
}

static void print_facts(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_profile *profile = report->profile;
	const struct sf_aggregate *sums = report->aggregate;

	fprintf(output->file, "%s", sf_colour(output, SF_BOLD));
	sf_print_cut(output->file, profile->command, output->width);
	fprintf(output->file, "%s\n", sf_colour(output, SF_PLAIN));
	print_when(profile, output);
	print_how(profile, output);
	print_chosen(report, output);
	print_ticks(sums, output);
	if (profile->measure.name)
		print_measure(report, output);
	if (!profile->measure.is_all)
		print_cpu(sums, is_counted(report), output);
	print_unseen(sums, output);
	print_holds(sums, output);
	print_label(output, "stacks");
	if (sums->sample_ticks)
		fprintf(output->file, "%.1f %% whole\n",
			sf_report_percent(sums->ends[SF_END_ROOT], sums->sample_ticks));
	else
		fprintf(output->file, "none: nothing was sampled\n");
	if (!profile->complete)
		sf_print_in(output, SF_YELLOW, "  %s\n", sf_profile_cut(profile));
}

/* Which clock the figures are by, and how much time the other clocks have. */
static void print_clock(const struct sf_report *report, const struct sf_output *output)
{
	static const struct {
		const char *now, *other, *options;
	} words[] = {
		[SF_CLOCK_CPU] = { "CPU time", "off the CPU", "--clock offcpu, --clock wall" },
		[SF_CLOCK_WALL] = { "elapsed time", "of it on a CPU", "--clock cpu" },
		[SF_CLOCK_OFFCPU] = { "time off the CPU", "on a CPU", "--clock cpu, --clock wall" },
		[SF_CLOCK_EVENT] = { "", "on a CPU", "--clock cpu, --clock wall" },
	};
	const struct sf_aggregate *sums = report->aggregate;
	const bool is_event = sums->clock == SF_CLOCK_EVENT;
	uint64_t other_ns = sums->clock == SF_CLOCK_CPU ? sums->offcpu_ns : sums->cpu_ns;
	char time[32], other[32];

	fputs(is_event ? "\nFigures are " : "\nTimes are ", output->file);
	sf_print_in(output, SF_BOLD, "%s", is_event ? report->profile->measure.name : words[sums->clock].now);
	fprintf(output->file, ": %s.", sf_report_weight(report, time, sums->total_ns));
	if (other_ns)
		fprintf(output->file, " %s %s: %s", sf_format_time(other, other_ns),
			words[sums->clock].other, words[sums->clock].options);
	putc('\n', output->file);
}

void sf_report_header(const struct sf_report *report, const struct sf_output *output)
{
	print_facts(report, output);
	print_clock(report, output);
}
