/* SPDX-License-Identifier: Apache-2.0 */
/* The lines below the tables of `stillframe report`: each says once what holds for some rows, and what would help. */
#include <stdio.h>
#include <string.h>

#include "base/location.h"
#include "cli/report.h"

static void print_approximate(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	char text[500], time[32];

	if (!sums->approximate_ns)
		return;
	snprintf(text, sizeof(text),
		 "the innermost function is uncertain in %.1f %% of " SF_MANAGED_TIME " %s (%s): calls that the "
		 "compiler inlined there may be missing. " SF_EXACT_HINT,
		 sf_report_percent(sums->approximate_ns, sums->managed_ns), sf_report_unit(report),
		 sf_report_weight(report, time, sums->approximate_ns));
	fprintf(output->file, "\n" SF_REPORT_MARK "     ");
	sf_print_wrapped(output->file, text, strlen(text), 6, 6);
}

static void print_guessed(const struct sf_report *report, const struct sf_output *output)
{
	const struct sf_aggregate *sums = report->aggregate;
	char text[300], time[32];

	if (!sums->tree.guessed_ns)
		return;
	snprintf(
		text, sizeof(text),
		"in %.1f %% of the %s (%s) a caller is a guess, since the code that it called says nothing of its frame. "
		"It may be wrong, and so may all above it.",
		sf_report_percent(sums->tree.guessed_ns, sums->total_ns), sf_report_unit(report),
		sf_report_weight(report, time, sums->tree.guessed_ns));
	fprintf(output->file, "\n" SF_REPORT_GUESS "     ");
	sf_print_wrapped(output->file, text, strlen(text), 6, 6);
}

/* Self weight of code in no file. */
static uint64_t nameless_ns(const struct sf_report *report)
{
	const struct sf_aggregate *sums = report->aggregate;
	char unknown[SF_UNKNOWN_SIZE];
	uint64_t ns = 0;

	sf_location_unknown("", unknown);
	for (size_t i = 0; i < sums->n_functions; i++) {
		if (strcmp(sf_aggregate_name(report->profile, sums->functions[i].function), unknown) == 0)
			ns += sums->functions[i].self_ns;
	}
	return ns;
}

/* From one part in a hundred on: what is less is not worth a line. */
static void print_nameless(const struct sf_report *report, const struct sf_output *output)
{
	const uint64_t ns = nameless_ns(report), total_ns = report->aggregate->total_ns;
	char text[400], time[32];

	if (!ns || ns < total_ns / 100)
		return;
	snprintf(text, sizeof(text),
		 "%.1f %% of the %s (%s) is in code in no file, which a program makes while it runs. Such code has names where "
		 "the program writes a perf map: " SF_PERF_MAP_HINT ".",
		 sf_report_percent(ns, total_ns), sf_report_unit(report), sf_report_weight(report, time, ns));
	fputs("\nnote: ", output->file);
	sf_print_wrapped(output->file, text, strlen(text), 6, 6);
}

void sf_report_footnotes(const struct sf_report *report, const struct sf_output *output)
{
	const bool functions = report->only < 0 || report->only == SF_SECTION_FUNCTIONS;
	const bool tree = report->only < 0 || report->only == SF_SECTION_TREE;

	if (functions || tree) {
		print_approximate(report, output);
		print_nameless(report, output);
	}
	if (tree)
		print_guessed(report, output);
}
