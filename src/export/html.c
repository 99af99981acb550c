/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTML export: a single file that contains the page of src/web and the data. src/web/page.html
 * marks the place of the data. tests/browser tests the page.
 *
 * The data of the page (src/web), as one JSON object. src/web/data.js reads it:
 *
 *   about      facts of the recording, its notes, losses by cause, CPU time seen and counted
 *   threads    [{name, process, process_number, pid, tid}]
 *   functions  columns name, module, file (indexes of strings) and kind
 *   nodes      columns parent (how far back), function, line: stacks as a tree, node 0 its root
 *   rows       columns thread, node, state, ticks, cpu, wall (microseconds)
 *   strings    texts, "" first
 *
 * Frames of one function at different lines are one node, with the line of the largest weight, because
 * users compare functions. Nodes and rows without weight are left out.
 */
#include "export/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/intern.h"
#include "export/json_text.h"
#include "export/tally.h"
#include "export/web_page.h"
#include "recording/profile/aggregate.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

struct page {
	const struct sf_profile *profile;
	const struct sf_tally *tally;
	FILE *out;
	struct sf_intern *strings, *functions; /* functions by number; 0: "no stack" */
	struct sf_call_tree tree;
};

/* The page's index of a string; memory that ran out shows as UINT32_MAX. */
static uint32_t text(struct page *page, const char *string)
{
	return sf_intern_string(page->strings, string) - 1;
}

struct function {
	uint32_t name, module, file, kind;
};

static struct function describe(struct page *page, uint32_t number)
{
	const struct sf_profile *profile = page->profile;
	const struct sf_profile_function *function;
	uint32_t module = 0;

	if (number == 0)
		return (struct function){ text(page, SF_NO_STACK), 0, 0, SF_KIND_CUT };
	function = &profile->functions[number];
	if (function->module)
		module = profile->modules[function->module - 1].path;
	return (struct function){
		.name = text(page, sf_profile_string(profile, function->name)),
		.module = text(page, sf_profile_string(profile, module)),
		.file = text(page, sf_profile_string(profile, function->file)),
		.kind = function->kind,
	};
}

static bool print_functions(struct page *page)
{
	uint32_t n = sf_intern_count(page->functions);
	SF_CLEANUP(free) struct function *functions = calloc(n + 1, sizeof(*functions));
	const char *between = "\"functions\":{";

	if (!functions)
		return false;
	for (uint32_t i = 0; i < n; i++)
		functions[i] = describe(page, *(const uint32_t *)sf_intern_get(page->functions,
									       i + 1, NULL));
#define X(column)                                                                                  \
	fprintf(page->out, "%s\"" #column "\":[", between);                                        \
	for (uint32_t i = 0; i < n; i++)                                                           \
		fprintf(page->out, "%s%" PRIu32, i ? "," : "", functions[i].column);               \
	putc(']', page->out);                                                                      \
	between = ",\n";
	X(name) X(module) X(file) X(kind)
#undef X
	fputs("},\n", page->out);
	return true;
}

static bool is_approximate(const struct sf_tree_node *node)
{
	return node->approximate;
}

static bool is_guessed(const struct sf_tree_node *node)
{
	return node->guessed_ns != 0;
}

/* Numbers of nodes: there are few of either, and in many recordings none. */
static void print_doubtful(const struct page *page, const char *key, bool (*is_so)(const struct sf_tree_node *node))
{
	const char *between = "";

	fprintf(page->out, "],\n\"%s\":[", key);
	for (uint32_t i = 1; i < page->tree.n; i++) {
		if (!is_so(&page->tree.nodes[i]))
			continue;
		fprintf(page->out, "%s%" PRIu32, between, i);
		between = ",";
	}
}

/* Parents as distances: small numbers are short, and most parents are near. */
static void print_nodes(struct page *page)
{
	const struct sf_tree_node *nodes = page->tree.nodes;

	fputs("\"nodes\":{\"parent\":[0", page->out);
	for (uint32_t i = 1; i < page->tree.n; i++)
		fprintf(page->out, ",%" PRIu32, i - nodes[i].parent);
	fputs("],\n\"function\":[0", page->out);
	for (uint32_t i = 1; i < page->tree.n; i++)
		fprintf(page->out, ",%" PRIu32, sf_intern_find(page->functions, &nodes[i].function,
							       sizeof(nodes[i].function)) - 1);
	fputs("],\n\"line\":[0", page->out);
	for (uint32_t i = 1; i < page->tree.n; i++)
		fprintf(page->out, ",%" PRIu32, nodes[i].line);
	print_doubtful(page, "approximate", is_approximate);
	print_doubtful(page, "guessed", is_guessed);
	fputs("]},\n", page->out);
}

static uint64_t microseconds(uint64_t ns)
{
	return (ns + 500) / 1000;
}

/* X(column, what a row has in it) */
#define ROW_COLUMNS(X)                                                                             \
	X("thread", row->thread)                                                                   \
	X("node", page->tree.of[row->node])                                                        \
	X("state", row->state)                                                                     \
	X("ticks", row->ticks)                                                                     \
	X("cpu", microseconds(row->cpu_ns))                                                        \
	X("wall", microseconds(row->wall_ns))                                                      \
	X("offcpu", microseconds(row->offcpu_ns))                                                  \
	X("event", row->amount)

static void print_rows(struct page *page)
{
	const struct sf_tally *tally = page->tally;
	const char *between = "";

	fputs("\"rows\":{", page->out);
#define X(column, value)                                                                           \
	fprintf(page->out, "%s\"%s\":[", between, column);                                         \
	for (size_t i = 0; i < tally->n_rows; i++) {                                               \
		const struct sf_tally_row *row = &tally->rows[i];                                  \
		fprintf(page->out, "%s%" PRIu64, i ? "," : "", (uint64_t)(value));                 \
	}                                                                                          \
	putc(']', page->out);                                                                      \
	between = ",\n";
	ROW_COLUMNS(X)
#undef X
	fputs("},\n", page->out);
}

static bool print_strings(struct page *page)
{
	uint32_t n = sf_intern_count(page->strings);

	fputs("\"strings\":[", page->out);
	for (uint32_t i = 1; i <= n; i++) {
		if (i > 1)
			fputs(",\n", page->out);
		if (!sf_json_string(page->out, sf_intern_get(page->strings, i, NULL)))
			return false;
	}
	fputs("]", page->out);
	return true;
}

static struct json_object *thread_object(const struct sf_profile *profile, uint32_t thread)
{
	const struct sf_profile_thread *t = &profile->threads[thread];
	struct json_object *object = json_object_new_object();

	sf_json_text(object, "name", sf_tally_thread_name(profile, thread));
	sf_json_text(object, "process", sf_profile_string(profile, t->process_name));
	sf_json_number(object, "process_number", t->process);
	json_object_object_add(object, "pid", json_object_new_int(t->pid));
	json_object_object_add(object, "tid", json_object_new_int(t->tid));
	return object;
}

static bool print_threads(struct page *page)
{
	fputs("\"threads\":[", page->out);
	for (uint32_t i = 0; i < page->profile->n_threads; i++) {
		if (i)
			fputs(",\n", page->out);
		if (!sf_json_take(page->out, thread_object(page->profile, i)))
			return false;
	}
	fputs("],\n", page->out);
	return true;
}

static struct json_object *losses_array(const struct sf_profile *profile)
{
	struct json_object *array = json_object_new_array();
	uint64_t ticks[SF_N_LOSSES] = { 0 };

	for (size_t i = 0; i < profile->n_losses; i++)
		ticks[profile->losses[i].cause] += profile->losses[i].ticks;
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++) {
		struct json_object *object;

		if (!ticks[cause])
			continue;
		object = json_object_new_object();
		sf_json_text(object, "cause", sf_loss_word(cause));
		sf_json_text(object, "text", sf_loss_text(cause));
		sf_json_number(object, "ticks", ticks[cause]);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *notes_array(const struct sf_profile *profile)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < profile->n_notes; i++)
		json_object_array_add(array, sf_json_note(profile, &profile->notes[i]));
	return array;
}

static void add_sums(struct json_object *object, const struct page *page)
{
	uint64_t seen_ns = 0, counted_ns = 0, lost_ns = 0, lost_by[SF_N_LOSSES] = { 0 }, ticks = 0;
	char hint[400];

	for (uint32_t i = 0; i < page->profile->n_threads; i++)
		counted_ns += page->profile->threads[i].cpu_counted_ns;
	for (size_t i = 0; i < page->profile->n_losses; i++) {
		const struct sf_profile_loss *loss = &page->profile->losses[i];

		lost_ns += loss->cpu_ns;
		lost_by[loss->cause] += loss->cpu_ns;
	}
	counted_ns += lost_by[SF_LOSS_UNSEEN]; /* other losses are counted with their threads, as in the view `accounting` */
	for (size_t i = 0; i < page->profile->n_samples; i++) {
		ticks += page->profile->samples[i].ticks;
		seen_ns += page->profile->samples[i].unseen ? 0 : page->profile->samples[i].cpu_ns;
	}
	sf_json_number(object, "ticks", ticks);
	sf_json_number(object, "cpu_seen_ns", seen_ns);
	sf_json_number(object, "cpu_counted_ns", counted_ns);
	if (!sf_unseen_is_notable(lost_ns, sf_cpu_whole(seen_ns, lost_ns, counted_ns)))
		return;
	sf_json_number(object, "cpu_lost_ns", lost_ns);
	snprintf(hint, sizeof(hint), SF_UNSEEN_HINT "%s", sf_unseen_advice(lost_by, lost_ns));
	sf_json_text(object, "unseen_hint", hint);
}

/* The event that samples count; nothing in a recording of times. */
static void add_measure(struct json_object *object, const struct sf_profile *profile)
{
	const struct sf_profile_measure *measure = &profile->measure;
	struct json_object *json;
	uint64_t seen = 0, lost = 0;

	if (!measure->name)
		return;
	for (size_t i = 0; i < profile->n_samples; i++)
		*(profile->samples[i].unseen ? &lost : &seen) += profile->samples[i].amount;
	json = sf_json_measure(measure);
	sf_json_number(json, "seen", seen);
	sf_json_number(json, "lost", lost);
	json_object_object_add(object, "measure", json);
}

/* The words for the kinds of functions, by number. */
static struct json_object *kinds_array(void)
{
	struct json_object *array = json_object_new_array();

	for (unsigned kind = 0; kind < SF_N_KINDS; kind++)
		json_object_array_add(array, json_object_new_string(sf_kind_word(kind)));
	return array;
}

static bool print_about(struct page *page, const struct sf_filter *filter)
{
	const struct sf_profile *profile = page->profile;
	struct json_object *object = sf_json_recording(profile);

	sf_json_text(object, "clock", sf_clock_word(filter->clock));
	sf_json_text(object, "exact_hint", SF_EXACT_PAGE_HINT);
	json_object_object_add(object, "kinds", kinds_array());
	sf_json_text(object, "filter", filter->threads);
	sf_json_text(object, "label", filter->label);
	sf_json_text(object, "cut", sf_profile_cut(profile));
	sf_json_number(object, "start_unix_ms", profile->start_unix_ns / 1000000);
	add_sums(object, page);
	add_measure(object, profile);
	json_object_object_add(object, "losses", losses_array(profile));
	json_object_object_add(object, "notes", notes_array(profile));
	fputs("{\"about\":", page->out);
	if (!sf_json_take(page->out, object))
		return false;
	fputs(",\n", page->out);
	return true;
}

/* Gives the functions of the tree numbers. */
static bool number_functions(struct page *page)
{
	for (uint32_t i = 1; i < page->tree.n; i++) {
		if (!sf_intern_add(page->functions, &page->tree.nodes[i].function,
				   sizeof(page->tree.nodes[i].function), NULL))
			return false;
	}
	return true;
}

static bool write_page(struct page *page, const struct sf_filter *filter)
{
	if (text(page, "") == UINT32_MAX || !number_functions(page))
		return false;
	if (!print_about(page, filter) || !print_threads(page) || !print_functions(page))
		return false;
	print_nodes(page);
	print_rows(page);
	if (!print_strings(page))
		return false;
	fputs("}\n", page->out);
	return true;
}

/* False when memory ran out. Does not check whether writing to `out` worked. */
static bool write_data(const struct sf_profile *profile, const struct sf_filter *filter,
		       const struct sf_tally *tally, FILE *out)
{
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *strings = sf_intern_create();
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *functions = sf_intern_create();
	struct page page = { .profile = profile, .tally = tally, .out = out, .strings = strings,
			     .functions = functions };
	bool done = strings && functions && sf_call_tree_init(profile, filter->clock, &page.tree) &&
		    write_page(&page, filter);

	sf_call_tree_deinit(&page.tree);
	return done;
}

/* --- the file --- */

static bool write_html(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
		       struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = NULL;

	if (!sf_tally_create(profile, filter->clock, false, &tally, err))
		return false;
	fwrite(sf_web_page_head, 1, sf_web_page_head_size, out);
	if (!write_data(profile, filter, tally, out))
		return sf_fail_memory(err);
	fwrite(sf_web_page_foot, 1, sf_web_page_foot_size, out);
	return sf_export_finish(out, err);
}

const struct sf_exporter sf_export_html = {
	.name = "html",
	.summary = "one page with everything in it: a flame graph for any browser",
	.suffix = ".html",
	.write = write_html,
};
