/* SPDX-License-Identifier: Apache-2.0 */
/* The summary that `stillframe record` prints after a recording. */
#include "cli/summary.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/output.h"
#include "frozen/runtime_list.h"
#include "recording/profile/profile.h"

#define LEAST_SHARED_NS 1000000000 /* of a recording whose cost is a share, too */

/* " (7 late, 5 gone)": the counts that are not zero. */
static void print_counts(FILE *out, const uint64_t *counts, unsigned n, unsigned from,
			 const char *(*word)(unsigned))
{
	const char *before = " (";
	char number[32];

	for (unsigned i = from; i < n; i++) {
		if (!counts[i])
			continue;
		fprintf(out, "%s%s %s", before, sf_format_count(number, counts[i]), word(i));
		before = ", ";
	}
	if (before[0] == ',')
		fputc(')', out);
}

static void print_head(FILE *out, const struct sf_session_options *options,
		       const struct sf_session_result *result, const char *name)
{
	const struct sf_recording_totals *totals = &result->totals;
	char time[32], count[32], beside[64] = "";

	fprintf(out, "stillframe: %s of %s (", sf_format_time(time, result->duration_ns),
		options->capture.all ? options->command : name);
	if (!options->capture.all)
		fprintf(out, "pid %d", options->capture.pid);
	if (options->capture.n_more)
		fprintf(out, " and %zu more", options->capture.n_more);
	fprintf(out, "%s%s thread%s", options->capture.all ? "" : ", ", sf_format_count(count, totals->n_threads),
		totals->n_threads == 1 ? "" : "s");
	if (totals->n_processes > 1)
		fprintf(out, " of %s processes", sf_format_count(count, totals->n_processes));
	fprintf(out, ") by %s", options->engine->name);
	if (options->engine->describe)
		options->engine->describe(options->capture.settings, beside, sizeof(beside));
	fprintf(out, "%s%s%s\n", *beside ? " (" : "", beside, *beside ? ")" : "");
}

static void print_ticks(FILE *out, const struct sf_recording_totals *totals)
{
	char ticks[32], samples[32], losses[32];

	fprintf(out, "  ticks %s = %s sampled + %s lost", sf_format_count(ticks, totals->ticks),
		sf_format_count(samples, totals->ticks - totals->losses),
		sf_format_count(losses, totals->losses));
	print_counts(out, totals->losses_by, SF_N_LOSSES, 0, sf_loss_word);
	fputc('\n', out);
}

static void print_stacks(FILE *out, const struct sf_recording_totals *totals)
{
	uint64_t sampled = totals->ticks - totals->losses;
	uint64_t complete = totals->ends_by[SF_END_ROOT];

	if (!sampled)
		return;
	fprintf(out, "  stacks %.2f %% complete", 100.0 * (double)complete / (double)sampled);
	print_counts(out, totals->ends_by, SF_N_ENDS, SF_END_ROOT + 1, sf_end_word);
	fputc('\n', out);
}

static void print_cpu(FILE *out, const struct sf_recording_totals *totals)
{
	char seen[32], counted[32], lost[32];

	fprintf(out, "  cpu   %s seen, %s counted by the kernel",
		sf_format_time(seen, totals->cpu_seen_ns),
		sf_format_time(counted, totals->cpu_counted_ns));
	if (totals->cpu_lost_ns >= 1000000)
		fprintf(out, ", %s lost", sf_format_time(lost, totals->cpu_lost_ns));
	fputc('\n', out);
}

static void print_events(FILE *out, const struct sf_recording_totals *totals)
{
	char seen[32], counted[32], lost[32];

	fprintf(out, "  %-5s %s %s seen, ", totals->unit, sf_format_count(seen, totals->amount_seen), totals->measure);
	if (totals->amount_seen && !totals->amount_counted) /* a program that counts its events itself was killed */
		fputs("not counted to the end", out);
	else
		fprintf(out, "%s counted", sf_format_count(counted, totals->amount_counted));
	if (totals->amount_lost)
		fprintf(out, ", %s lost", sf_format_count(lost, totals->amount_lost));
	fputc('\n', out);
}

/* From one part in a hundred on: what is less is not worth a line. */
static void print_approximate(FILE *out, const struct sf_recording_totals *totals)
{
	char text[500];

	if (!totals->approximate_ns || totals->approximate_ns < totals->managed_ns / 100)
		return;
	snprintf(text, sizeof(text),
		 "the innermost function is uncertain in %.1f %% of " SF_MANAGED_TIME " CPU time: calls that were inlined "
		 "there may be missing. " SF_EXACT_HINT,
		 100.0 * (double)totals->approximate_ns / (double)totals->managed_ns);
	fputs("  note  ", out);
	sf_print_wrapped(out, text, strlen(text), 8, 8);
}

static void print_unseen(FILE *out, const struct sf_recording_totals *totals)
{
	const uint64_t whole_ns = sf_cpu_whole(totals->cpu_seen_ns, totals->cpu_lost_ns, totals->cpu_counted_ns);
	char text[400];

	if (!sf_unseen_is_notable(totals->cpu_lost_ns, whole_ns))
		return;
	snprintf(text, sizeof(text), "%.1f %% " SF_UNSEEN_HINT "%s", 100.0 * (double)totals->cpu_lost_ns / (double)whole_ns,
		 sf_unseen_advice(totals->cpu_lost_by, totals->cpu_lost_ns));
	fputs("  warning  ", out);
	sf_print_wrapped(out, text, strlen(text), 11, 8);
}

static void print_holds(FILE *out, const struct sf_session_result *result)
{
	const struct sf_recording_totals *totals = &result->totals;
	char count[32], median[32], most[32], longest[32];

	if (totals->holds)
		fprintf(out, "  holds %s: median %s, 99 %% within %s, longest %s\n",
			sf_format_count(count, totals->holds),
			sf_format_time(median, totals->hold_p50_ns),
			sf_format_time(most, totals->hold_p99_ns),
			sf_format_time(longest, totals->hold_max_ns));
	else
		fprintf(out, "  holds none\n");
}

/* Beside a short recording a share would say nothing. */
static void print_cpu_cost(FILE *out, const struct sf_session_result *result, uint64_t cpu_ns)
{
	char time[32];

	fprintf(out, "%s of CPU time", sf_format_time(time, cpu_ns));
	if (result->duration_ns >= LEAST_SHARED_NS)
		fprintf(out, " (%.1f %% of one core)", 100.0 * (double)cpu_ns / (double)result->duration_ns);
}

/* With the time that it took to begin. */
static void print_cost(FILE *out, const struct sf_session_result *result)
{
	char memory[32];

	fputs("  cost  ", out);
	print_cpu_cost(out, result, result->own_cpu_ns);
	fprintf(out, ", %s\n", sf_format_bytes(memory, result->own_memory));
	if (!result->inside_cpu_ns)
		return;
	fputs("        and, in the program, the agent's threads: ", out);
	print_cpu_cost(out, result, result->inside_cpu_ns);
	fputc('\n', out);
}

static void print_notes(FILE *out, const char *notes)
{
	for (const char *end; (end = strchr(notes, '\n')); notes = end + 1) {
		fputs("  note  ", out);
		sf_print_wrapped(out, notes, (size_t)(end - notes), 8, 8);
	}
}

static void print_cut(FILE *out, const struct sf_recording_totals *totals)
{
	char saved[32], all[32];

	fprintf(out, "  cut short: %s of %s samples are in the file\n",
		sf_format_count(saved, totals->samples - totals->unsaved), sf_format_count(all, totals->samples));
}

/* Commands that can be pasted: no name is several words, or an option. */
static void print_next(FILE *out, const char *path)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s%s", *path == '-' ? "./" : "", path);
	sf_sanitize(name);
	fputs("   look: stillframe report ", out);
	sf_print_word(out, name);
	fputs("\n                 picture: stillframe export --format html ", out);
	sf_print_word(out, name);
	fputc('\n', out);
}

void sf_print_summary(FILE *out, const struct sf_session_options *options,
		      const struct sf_session_result *result, const char *name, bool whole)
{
	print_head(out, options, result, name);
	print_ticks(out, &result->totals);
	print_stacks(out, &result->totals);
	if (*result->totals.measure)
		print_events(out, &result->totals);
	if (result->totals.has_times || !*result->totals.measure)
		print_cpu(out, &result->totals);
	print_unseen(out, &result->totals);
	print_holds(out, result);
	print_cost(out, result);
	print_approximate(out, &result->totals);
	print_notes(out, result->notes);
	if (!whole)
		print_cut(out, &result->totals);
	fputs(whole ? "  wrote " : "  kept  ", out);
	sf_print_clean(out, options->output);
	print_next(out, options->output);
}
