/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the data of the page (src/web) as JSON. */
#include "export/page_data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/intern.h"
#include "base/vec.h"
#include "export/json_text.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

/* A node of the page's tree: a function below a node. Compared as bytes, so it has no holes. */
struct key {
	uint32_t parent, function;
};

struct line {
	uint32_t line;
	bool approximate;   /* calls inlined in it may be missing from some of its stacks */
	uint64_t weight_ns;
};

struct page {
	const struct sf_profile *profile;
	const struct sf_tally *tally;
	FILE *out;
	struct sf_intern *strings, *functions, *nodes; /* functions by number, nodes by key */
	SF_VEC(struct line) lines;                     /* by page node, minus 1 */
	uint32_t *node_of;                             /* by profile node: page node */
	uint64_t *total_ns;                            /* by profile node */
};

/* The number under which a function of the profile is kept; UINT32_MAX stands for "no stack". */
#define NO_STACK UINT32_MAX

static void sum_totals(struct page *page)
{
	const struct sf_profile *profile = page->profile;

	for (size_t i = 0; i < page->tally->n_rows; i++)
		page->total_ns[page->tally->rows[i].node] += page->tally->rows[i].weight_ns;
	for (uint32_t i = profile->n_nodes; i-- > 1;)
		page->total_ns[profile->nodes[i].parent] += page->total_ns[i];
}

/* The page node of `function` below `parent`; 0 when memory ran out. */
static uint32_t merge_node(struct page *page, uint32_t parent, uint32_t function, struct line line)
{
	const struct key key = { parent, sf_intern_add(page->functions, &function,
						       sizeof(function), NULL) };
	bool is_new;
	uint32_t number;
	struct line *best;
	bool approximate;

	if (!key.function)
		return 0;
	number = sf_intern_add(page->nodes, &key, sizeof(key), &is_new);
	if (!number || (is_new && !sf_vec_push(&page->lines, line)))
		return 0;
	best = &page->lines.items[number - 1];
	approximate = best->approximate || line.approximate;
	if (line.weight_ns > best->weight_ns)
		*best = line;
	best->approximate = approximate;
	return number;
}

/* Parents have smaller numbers, here as there, so one pass does. */
static bool merge_nodes(struct page *page)
{
	const struct sf_profile *profile = page->profile;

	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		const struct sf_profile_node *node = &profile->nodes[i];
		const struct sf_profile_frame *frame = &profile->frames[node->frame];
		const struct line line = { frame->line, frame->approximate, page->total_ns[i] };

		if (!line.weight_ns)
			continue;
		page->node_of[i] = merge_node(page, page->node_of[node->parent], frame->function,
					      line);
		if (!page->node_of[i])
			return false;
	}
	return true;
}

static bool add_no_stack(struct page *page)
{
	for (size_t i = 0; i < page->tally->n_rows; i++) {
		if (page->tally->rows[i].node == 0) {
			page->node_of[0] = merge_node(page, 0, NO_STACK, (struct line){ 0 });
			return page->node_of[0] != 0;
		}
	}
	return true;
}

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

	if (number == NO_STACK)
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

static const struct {
	const char *name;
	size_t offset;
} function_columns[] = {
	{ "name", offsetof(struct function, name) },
	{ "module", offsetof(struct function, module) },
	{ "file", offsetof(struct function, file) },
	{ "kind", offsetof(struct function, kind) },
};

static bool print_functions(struct page *page)
{
	uint32_t n = sf_intern_count(page->functions);
	SF_CLEANUP(free) struct function *functions = calloc(n + 1, sizeof(*functions));

	if (!functions)
		return false;
	for (uint32_t i = 0; i < n; i++)
		functions[i] = describe(page, *(const uint32_t *)sf_intern_get(page->functions,
									       i + 1, NULL));
	fputs("\"functions\":{", page->out);
	for (size_t c = 0; c < sizeof(function_columns) / sizeof(*function_columns); c++) {
		fprintf(page->out, "%s\"%s\":[", c ? ",\n" : "", function_columns[c].name);
		for (uint32_t i = 0; i < n; i++) {
			const void *field = (const char *)&functions[i] +
					    function_columns[c].offset;

			fprintf(page->out, "%s%" PRIu32, i ? "," : "", *(const uint32_t *)field);
		}
		putc(']', page->out);
	}
	fputs("},\n", page->out);
	return true;
}

/* Numbers of nodes: there are few, and none at all without a runtime. */
static void print_approximate(const struct page *page, uint32_t n)
{
	const char *between = "";

	fputs("],\n\"approximate\":[", page->out);
	for (uint32_t i = 1; i <= n; i++) {
		if (!page->lines.items[i - 1].approximate)
			continue;
		fprintf(page->out, "%s%" PRIu32, between, i);
		between = ",";
	}
}

/* Parents as distances: small numbers are short, and most parents are near. */
static void print_nodes(struct page *page)
{
	uint32_t n = sf_intern_count(page->nodes);

	fputs("\"nodes\":{\"parent\":[0", page->out);
	for (uint32_t i = 1; i <= n; i++) {
		const struct key *key = sf_intern_get(page->nodes, i, NULL);

		fprintf(page->out, ",%" PRIu32, i - key->parent);
	}
	fputs("],\n\"function\":[0", page->out);
	for (uint32_t i = 1; i <= n; i++) {
		const struct key *key = sf_intern_get(page->nodes, i, NULL);

		fprintf(page->out, ",%" PRIu32, key->function - 1);
	}
	fputs("],\n\"line\":[0", page->out);
	for (uint32_t i = 1; i <= n; i++)
		fprintf(page->out, ",%" PRIu32, page->lines.items[i - 1].line);
	print_approximate(page, n);
	fputs("]},\n", page->out);
}

static uint64_t microseconds(uint64_t ns)
{
	return (ns + 500) / 1000;
}

/* X(column, what a row has in it) */
#define ROW_COLUMNS(X)                                                                             \
	X("thread", row->thread)                                                                   \
	X("node", page->node_of[row->node])                                                        \
	X("state", row->state)                                                                     \
	X("ticks", row->ticks)                                                                     \
	X("cpu", microseconds(row->cpu_ns))                                                        \
	X("wall", microseconds(row->wall_ns))                                                      \
	X("offcpu", microseconds(row->offcpu_ns))

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

	json_object_object_add(object, "name",
			       json_object_new_string(sf_tally_thread_name(profile, thread)));
	json_object_object_add(object, "process",
			       json_object_new_string(sf_profile_string(profile, t->process_name)));
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

static void add_number(struct json_object *object, const char *key, uint64_t number)
{
	json_object_object_add(object, key, json_object_new_uint64(number));
}

static void add_text(struct json_object *object, const char *key, const char *string)
{
	json_object_object_add(object, key, json_object_new_string(string ? string : ""));
}

/* Losses by cause, of the threads that were chosen and of no known thread. */
static struct json_object *losses_array(const struct sf_profile *profile, const bool *chosen)
{
	struct json_object *array = json_object_new_array();
	uint64_t ticks[SF_N_LOSSES] = { 0 };

	for (size_t i = 0; i < profile->n_losses; i++) {
		const struct sf_profile_loss *loss = &profile->losses[i];

		if (loss->cause < SF_N_LOSSES &&
		    (loss->thread == UINT32_MAX || chosen[loss->thread]))
			ticks[loss->cause] += loss->ticks;
	}
	for (unsigned cause = 0; cause < SF_N_LOSSES; cause++) {
		struct json_object *object;

		if (!ticks[cause])
			continue;
		object = json_object_new_object();
		add_text(object, "cause", sf_loss_word(cause));
		add_text(object, "text", sf_loss_text(cause));
		add_number(object, "ticks", ticks[cause]);
		json_object_array_add(array, object);
	}
	return array;
}

static void add_cpu(struct json_object *object, const struct sf_profile *profile,
		    const bool *chosen)
{
	uint64_t seen_ns = 0, counted_ns = 0;

	for (uint32_t i = 0; i < profile->n_threads; i++) {
		if (!chosen[i])
			continue;
		seen_ns += profile->threads[i].cpu_seen_ns;
		counted_ns += profile->threads[i].cpu_counted_ns;
	}
	add_number(object, "cpu_seen_ns", seen_ns);
	add_number(object, "cpu_counted_ns", counted_ns);
}

static const char *const clock_words[] = {
	[SF_CLOCK_WALL] = "wall",
	[SF_CLOCK_CPU] = "cpu",
	[SF_CLOCK_OFFCPU] = "offcpu",
};

static struct json_object *about_object(const struct page *page, const struct sf_filter *filter,
					const bool *chosen)
{
	const struct sf_profile *profile = page->profile;
	struct json_object *object = json_object_new_object();
	uint64_t samples = 0;

	for (size_t i = 0; i < page->tally->n_rows; i++)
		samples += page->tally->rows[i].ticks;
	add_text(object, "command", profile->command);
	add_text(object, "engine", profile->engine);
	add_text(object, "host", profile->host);
	add_text(object, "version", profile->version);
	add_text(object, "clock", clock_words[filter->clock]);
	add_text(object, "filter", filter->threads);
	add_number(object, "start_unix_ms", profile->start_unix_ns / 1000000);
	add_number(object, "duration_ns", profile->duration_ns);
	add_number(object, "rate_mhz", profile->rate_mhz);
	add_number(object, "blocked_rate_mhz", profile->blocked_rate_mhz);
	add_number(object, "ticks", samples);
	add_cpu(object, profile, chosen);
	json_object_object_add(object, "complete", json_object_new_boolean(profile->complete));
	json_object_object_add(object, "losses", losses_array(profile, chosen));
	return object;
}

static bool print_about(struct page *page, const struct sf_filter *filter)
{
	SF_CLEANUP(free) bool *chosen = NULL;

	if (!sf_tally_threads(page->profile, filter, &chosen, NULL))
		return false;
	fputs("{\"about\":", page->out);
	if (!sf_json_take(page->out, about_object(page, filter, chosen)))
		return false;
	fputs(",\n", page->out);
	return true;
}

static bool write_page(struct page *page, const struct sf_filter *filter)
{
	sum_totals(page);
	if (text(page, "") == UINT32_MAX || !merge_nodes(page) || !add_no_stack(page))
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

bool sf_page_data_write(const struct sf_profile *profile, const struct sf_filter *filter,
			const struct sf_tally *tally, FILE *out)
{
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *strings = sf_intern_create();
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *functions = sf_intern_create();
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *nodes = sf_intern_create();
	SF_CLEANUP(free) uint32_t *node_of = calloc(profile->n_nodes + 1, sizeof(*node_of));
	SF_CLEANUP(free) uint64_t *total_ns = calloc(profile->n_nodes + 1, sizeof(*total_ns));
	struct page page = {
		.profile = profile,
		.tally = tally,
		.out = out,
		.strings = strings,
		.functions = functions,
		.nodes = nodes,
		.node_of = node_of,
		.total_ns = total_ns,
	};
	bool done = false;

	if (strings && functions && nodes && node_of && total_ns)
		done = write_page(&page, filter);
	sf_vec_deinit(&page.lines);
	return done;
}
