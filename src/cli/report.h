/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report: a profile that has been added up, and how much of it to show. The text and the JSON
 * print the same sections.
 *
 * To add a section: a line in SF_SECTIONS, a function in report_text.c and one in report_json.c,
 * and a paragraph in docs/report.md.
 */
#ifndef SF_CLI_REPORT_H
#define SF_CLI_REPORT_H

#include "base/output.h"
#include "recording/profile/aggregate.h"
#include "recording/profile/profile.h"

/* X(NAME, word of --by) */
#define SF_SECTIONS(X)                                                                             \
	X(FUNCTIONS, "function")                                                      \
	X(TREE, "tree")                                                                    \
	X(PROCESSES, "process")                                                         \
	X(THREADS, "thread")                                                            \
	X(STATES, "state")                                                               \
	X(WAITS, "wait")                                                                  \
	X(LABELS, "label")                                                                 \
	X(ENDS, "end")                                                                     \
	X(LOSSES, "loss")

enum sf_section {
#define X(NAME, word) SF_SECTION_##NAME,
	SF_SECTIONS(X)
#undef X
	SF_N_SECTIONS
};

struct sf_report {
	const char *path;
	const struct sf_profile *profile;
	const struct sf_aggregate *aggregate;
	const char *threads, *label; /* by which samples were chosen; NULL: by none */
	int only;             /* enum sf_section, or -1: all */
	uint32_t top;         /* rows of a table; 0: 20 in text, all in JSON */
	uint32_t depth;       /* of the tree, in lines */
	uint32_t min_percent; /* parts of the tree below it are left out */
};

/*
 * The mark behind the name of a function: some of its own time may be that of calls that were inlined into it. A line
 * below the table explains the mark once.
 */
#define SF_REPORT_MARK "~"
static inline const char *sf_report_mark(uint64_t approximate_ns)
{
	return approximate_ns ? SF_REPORT_MARK : "";
}

/* The mark behind the name of a caller: in some of the stacks that it is in, it is a guess that it is the caller. */
#define SF_REPORT_GUESS "?"

void sf_report_text(const struct sf_report *report, const struct sf_output *output);

/* Prints the header above the sections, in report_header.c. */
void sf_report_header(const struct sf_report *report, const struct sf_output *output);

/* What holds for some rows of the tables of functions and calls, in report_footnotes.c. */
void sf_report_footnotes(const struct sf_report *report, const struct sf_output *output);

/* The tree section, in report_tree.c. */
void sf_report_tree(const struct sf_report *report, const struct sf_output *output);

/* The unit of the report's clock: "time", or the unit of an event. */
static inline const char *sf_report_unit(const struct sf_report *report)
{
	return report->aggregate->clock == SF_CLOCK_EVENT ? report->profile->measure.unit : "time";
}

/* A weight by the report's clock, as text: a time, a number of bytes, or a count. */
char *sf_report_weight(const struct sf_report *report, char ret[32], uint64_t weight);

/* The CPU time that the kernel counted of a thread; "-": unknown, as it is with --label. */
char *sf_report_counted(const struct sf_report *report, char ret[32], const struct sf_share *thread);

bool sf_report_json(const struct sf_report *report, FILE *out, struct sf_error *err);

/* A share of the whole in percent; 0 of nothing. */
static inline double sf_report_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* How many of `n` rows to show; `otherwise`: where --top says nothing, 0: all. */
static inline size_t sf_report_rows(const struct sf_report *report, size_t n, uint32_t otherwise)
{
	size_t wanted = report->top ? report->top : otherwise;

	return wanted && wanted < n ? wanted : n;
}

#endif
