/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brendan Gregg's folded stacks, which flamegraph.pl, inferno, speedscope and many more read:
 *
 *     worker;main;run;compute 1250000
 *
 * One line for each distinct stack: the thread, then the frames from the outermost inwards, then
 * the time in microseconds, or the amount of the event. Time and not ticks, because one tick of a blocked thread stands for ten
 * times as long as one of a running thread: counts would not add up.
 *
 * The format has no escapes: the separator and control characters in names are replaced.
 */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "export/tally.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

struct folding {
	const struct sf_profile *profile;
	SF_VEC(char) line;          /* the stack at hand */
	SF_VEC(uint32_t) path;      /* its frames, innermost first */
	struct sf_intern *stacks;   /* texts; stacks of equal text are one */
	SF_VEC(uint64_t) weights;   /* by number of a text, minus 1; nanoseconds or events */
	bool is_time;
};

struct line {
	const char *text;
	uint64_t weight;            /* microseconds or events */
};

static char fold_char(char c)
{
	if (c == ';')
		return ':';
	return (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
}

static bool add_name(struct folding *folding, const char *name, const char *mark)
{
	size_t size, mark_size = strlen(mark);

	if (!*name)
		name = "[no name]";
	size = strlen(name);
	if (!sf_vec_reserve(&folding->line, size + mark_size + 1))
		return false;
	if (folding->line.n)
		folding->line.items[folding->line.n++] = ';';
	for (size_t i = 0; i < size; i++)
		folding->line.items[folding->line.n++] = fold_char(name[i]);
	for (size_t i = 0; i < mark_size; i++)
		folding->line.items[folding->line.n++] = mark[i];
	return true;
}

static bool add_frames(struct folding *folding, uint32_t node)
{
	const struct sf_profile *profile = folding->profile;

	if (!node)
		return add_name(folding, SF_NO_STACK, "");
	folding->path.n = 0;
	for (; node; node = profile->nodes[node].parent) {
		if (!sf_vec_push(&folding->path, profile->nodes[node].frame))
			return false;
	}
	for (size_t i = folding->path.n; i-- > 0;) {
		uint32_t frame = folding->path.items[i];

		/* Of the innermost one only: it would split its callers' time. */
		if (!add_name(folding, sf_profile_frame_name(profile, frame),
			      i == 0 && profile->frames[frame].approximate ? SF_APPROXIMATE_MARK
									   : ""))
			return false;
	}
	return true;
}

static bool add_row(struct folding *folding, const struct sf_tally_row *row)
{
	uint32_t number;
	bool is_new;

	folding->line.n = 0;
	if (!add_name(folding, sf_tally_thread_name(folding->profile, row->thread), "") ||
	    !add_frames(folding, row->node))
		return false;
	number = sf_intern_add(folding->stacks, folding->line.items, folding->line.n, &is_new);
	if (!number || (is_new && !sf_vec_push(&folding->weights, 0)))
		return false;
	folding->weights.items[number - 1] += row->weight;
	return true;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Sorted, so that two exports can be compared line by line. */
static bool print_lines(const struct folding *folding, FILE *out)
{
	SF_CLEANUP(free) struct line *lines = calloc(folding->weights.n + 1, sizeof(*lines));

	if (!lines)
		return false;
	for (size_t i = 0; i < folding->weights.n; i++) {
		lines[i].text = sf_intern_get(folding->stacks, (uint32_t)i + 1, NULL);
		lines[i].weight = folding->is_time ? (folding->weights.items[i] + 500) / 1000 : folding->weights.items[i];
	}
	qsort(lines, folding->weights.n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < folding->weights.n; i++) {
		if (lines[i].weight)
			fprintf(out, "%s %llu\n", lines[i].text,
				(unsigned long long)lines[i].weight);
	}
	return true;
}

static bool fold(struct folding *folding, const struct sf_tally *tally, FILE *out)
{
	if (!folding->stacks)
		return false;
	for (size_t i = 0; i < tally->n_rows; i++) {
		if (!add_row(folding, &tally->rows[i]))
			return false;
	}
	return print_lines(folding, out);
}

static bool write_collapsed(const struct sf_profile *profile, const struct sf_filter *filter,
			    FILE *out, struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = NULL;
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *stacks = sf_intern_create();
	struct folding folding = { .profile = profile, .stacks = stacks, .is_time = filter->clock != SF_CLOCK_EVENT };
	bool done;

	if (!sf_tally_create(profile, filter->clock, false, &tally, err))
		return false;
	done = fold(&folding, tally, out);
	sf_vec_deinit(&folding.line);
	sf_vec_deinit(&folding.path);
	sf_vec_deinit(&folding.weights);
	return done ? sf_export_finish(out, err) : sf_fail_memory(err);
}

const struct sf_exporter sf_export_collapsed = {
	.name = "collapsed",
	.summary = "folded stacks in microseconds or events, for flamegraph.pl, inferno and others",
	.suffix = ".folded",
	.write = write_collapsed,
};
