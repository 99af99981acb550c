/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree in text. The only callee of a function stands below it and not to the right of it, so
 * that fifty frames of nothing but calls take no width. Lines branch where calls do. An example:
 *
 *    total %   self %
 *      100.0           main
 *      100.0      0.1  serve
 *       60.2           ├─ parse
 *       60.2     60.2  │  strtod
 *       39.7     39.7  └─ render
 */
#include <inttypes.h>
#include <string.h>

#include "cli/report.h"

#define LEVEL_COLUMNS 3
#define FIGURE_COLUMNS 20
#define MIN_NAME_COLUMNS 30
#define MAX_LEVELS 10000 /* --depth is not more */

struct printer {
	const struct sf_report *report;
	const struct sf_output *output;
	uint64_t min_ns;
	bool last[MAX_LEVELS];  /* by level: no sibling follows */
};

static const struct sf_tree_node *node_at(const struct printer *printer, uint32_t number)
{
	return &printer->report->aggregate->tree.nodes[number];
}

/* Siblings are sorted, so the first one that is too small ends the list. */
static uint32_t visible(const struct printer *printer, uint32_t number)
{
	return number && node_at(printer, number)->total_ns >= printer->min_ns ? number : 0;
}

static void print_figure(const struct printer *printer, uint64_t ns)
{
	double percent = sf_report_percent(ns, printer->report->aggregate->total_ns);

	if (percent >= 0.05)
		fprintf(printer->output->file, " %8.1f", percent);
	else
		fprintf(printer->output->file, " %8s", "");
}

/* The lines in front of a name; far to the right, only the innermost levels. */
static int print_lines(const struct printer *printer, uint32_t levels, bool branch)
{
	uint32_t room = (uint32_t)(printer->output->width - FIGURE_COLUMNS - MIN_NAME_COLUMNS) /
			LEVEL_COLUMNS;
	uint32_t first = levels > room ? levels - room : 0;

	fprintf(printer->output->file, "%s", sf_colour(printer->output, SF_DIM));
	for (uint32_t level = first; level < levels; level++) {
		bool here = branch && level + 1 == levels;
		const char *line = here ? (printer->last[level] ? "└─ " : "├─ ")
					: (printer->last[level] ? "   " : "│  ");

		fputs(level == first && first ? "…  " : line, printer->output->file);
	}
	fprintf(printer->output->file, "%s", sf_colour(printer->output, SF_PLAIN));
	return (int)(levels - first) * LEVEL_COLUMNS;
}

/*
 * Recursion that only recurses becomes one line: the innermost of a run, and how long the run is.
 */
static uint32_t skip_repeats(const struct printer *printer, uint32_t number, uint32_t *repeats,
			     uint64_t *self_ns)
{
	*repeats = 1;
	*self_ns = node_at(printer, number)->self_ns;
	for (;;) {
		uint32_t child = visible(printer, node_at(printer, number)->first_child);

		if (!child || visible(printer, node_at(printer, child)->next) ||
		    node_at(printer, child)->function != node_at(printer, number)->function)
			return number;
		number = child;
		*self_ns += node_at(printer, number)->self_ns;
		++*repeats;
	}
}

/* Prints a node with its repeats, and returns the innermost of them. */
static uint32_t print_node(const struct printer *printer, uint32_t number, uint32_t levels,
			   bool branch)
{
	const struct sf_tree_node *node = node_at(printer, number);
	FILE *file = printer->output->file;
	uint32_t repeats, innermost;
	uint64_t self_ns;
	char times[24] = "", mark[3];
	int used;

	innermost = skip_repeats(printer, number, &repeats, &self_ns);
	snprintf(mark, sizeof(mark), "%s%s", sf_report_mark(node_at(printer, innermost)->approximate_ns),
		 node_at(printer, innermost)->guessed_ns ? SF_REPORT_GUESS : "");
	if (repeats > 1)
		snprintf(times, sizeof(times), " ×%" PRIu32, repeats);
	print_figure(printer, node->total_ns);
	print_figure(printer, self_ns);
	fputs("  ", file);
	used = FIGURE_COLUMNS + print_lines(printer, levels, branch) + (int)strlen(times) +
	       (int)strlen(mark);
	sf_print_cut(file, sf_aggregate_name(printer->report->profile, node->function),
		     printer->output->width - used);
	fputs(mark, file);
	sf_print_in(printer->output, SF_DIM, "%s\n", times);
	return innermost;
}

static void print_cut_here(const struct printer *printer, uint32_t levels)
{
	fprintf(printer->output->file, "%*s", FIGURE_COLUMNS, "");
	print_lines(printer, levels, false);
	sf_print_in(printer->output, SF_DIM, "… deeper: --depth\n");
}

static void print_branches(struct printer *printer, uint32_t first, uint32_t levels,
			   uint32_t depth);

/* A node and all below it, down to where calls branch. */
static void print_chain(struct printer *printer, uint32_t number, uint32_t levels, uint32_t depth)
{
	for (bool branch = true;; branch = false) {
		uint32_t child;

		number = print_node(printer, number, levels, branch);
		child = visible(printer, node_at(printer, number)->first_child);
		if (!child)
			return;
		if (++depth >= printer->report->depth) {
			print_cut_here(printer, levels);
			return;
		}
		if (visible(printer, node_at(printer, child)->next)) {
			print_branches(printer, child, levels + 1, depth);
			return;
		}
		number = child;
	}
}

static void print_branches(struct printer *printer, uint32_t first, uint32_t levels,
			   uint32_t depth)
{
	for (uint32_t number = first, next; number; number = next) {
		next = visible(printer, node_at(printer, number)->next);
		printer->last[levels - 1] = next == 0;
		print_chain(printer, number, levels, depth);
	}
}

/* An empty line parts the outermost functions: without it, the next one would seem to be a callee. */
static void print_roots(struct printer *printer, uint32_t first)
{
	for (uint32_t number = first; number; number = visible(printer, node_at(printer, number)->next)) {
		if (number != first)
			fputc('\n', printer->output->file);
		print_chain(printer, number, 0, 0);
	}
}

void sf_report_tree(const struct sf_report *report, const struct sf_output *output)
{
	struct printer printer = { .report = report, .output = output };
	uint64_t total_ns = report->aggregate->total_ns;

	/*
	 * Divided first: total_ns may be near the end of its type. At least 1, so that 0 % is all.
	 */
	printer.min_ns = total_ns / 100 * report->min_percent;
	if (!printer.min_ns)
		printer.min_ns = 1;
	fputc('\n', output->file);
	sf_print_in(output, SF_BOLD, "CALL TREE");
	sf_print_in(output, SF_DIM, ", branches from %" PRIu32 " %%\n", report->min_percent);
	sf_print_in(output, SF_DIM, "  total %%   self %%\n");
	print_roots(&printer, visible(&printer, report->aggregate->tree.nodes[0].first_child));
}
