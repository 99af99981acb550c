/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope's own format (https://www.speedscope.app/file-format-schema.json): one sampled profile
 * for each thread, in order of time, so that its "Time Order" view tells the truth.
 *
 * A frame is a function: with a line each, speedscope would split a function by call site.
 */
#include "export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "export/json_text.h"
#include "export/tally.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* A stretch in which a thread had one stack. */
struct stretch {
	uint32_t node;
	uint64_t weight;
};

typedef SF_VEC(struct stretch) stretches_t;

struct scope {
	const struct sf_profile *profile;
	stretches_t *threads;   /* by thread */
	SF_VEC(uint32_t) path;
	uint32_t *marked;       /* by function: its number as an approximate innermost frame; 0:
				 * none */
	const char *unit;       /* of weights, as the format names it */
	FILE *out;
};

/* The format has times, bytes, and "none" for counts. */
static const char *unit_of(const struct sf_profile *profile, enum sf_clock clock)
{
	if (clock != SF_CLOCK_EVENT)
		return "nanoseconds";
	return strcmp(profile->measure.unit, "bytes") == 0 ? "bytes" : "none";
}

static bool print_frame(const struct scope *scope, uint32_t number, const char *mark)
{
	const struct sf_profile *profile = scope->profile;
	const struct sf_profile_function *function = &profile->functions[number];
	SF_CLEANUP(free) char *name = NULL;

	if (asprintf(&name, "%s%s", sf_profile_string(profile, function->name), mark) < 0)
		return false;
	fputs(",\n{\"name\":", scope->out);
	if (!sf_json_string(scope->out, name))
		return false;
	if (function->file) {
		fputs(",\"file\":", scope->out);
		if (!sf_json_string(scope->out, sf_profile_string(profile, function->file)))
			return false;
	}
	putc('}', scope->out);
	return true;
}

/* The marked ones are behind all functions. */
static bool print_marked(const struct scope *scope)
{
	const struct sf_profile *profile = scope->profile;
	uint32_t n = profile->n_functions;

	for (uint32_t i = 1; i < profile->n_frames; i++) {
		const struct sf_profile_frame *frame = &profile->frames[i];

		if (!frame->approximate || scope->marked[frame->function])
			continue;
		scope->marked[frame->function] = n++;
		if (!print_frame(scope, frame->function, SF_APPROXIMATE_MARK))
			return false;
	}
	return true;
}

/* Functions keep their numbers; number 0 is the frame of samples without a stack. */
static bool print_frames(const struct scope *scope)
{
	const struct sf_profile *profile = scope->profile;

	fputs("\"shared\":{\"frames\":[\n{\"name\":\"" SF_NO_STACK "\"}", scope->out);
	for (uint32_t i = 1; i < profile->n_functions; i++) {
		if (!print_frame(scope, i, ""))
			return false;
	}
	if (!print_marked(scope))
		return false;
	fputs("\n]}", scope->out);
	return true;
}

static bool print_stack(struct scope *scope, uint32_t node)
{
	const struct sf_profile *profile = scope->profile;

	scope->path.n = 0;
	for (; node; node = profile->nodes[node].parent) {
		const struct sf_profile_frame *frame = &profile->frames[profile->nodes[node].frame];
		bool marked = frame->approximate && scope->path.n == 0;

		if (!sf_vec_push(&scope->path,
				 marked ? scope->marked[frame->function] : frame->function))
			return false;
	}
	if (!scope->path.n && !sf_vec_push(&scope->path, 0))
		return false;
	for (size_t i = scope->path.n; i-- > 0;)
		fprintf(scope->out, "%" PRIu32 "%s", scope->path.items[i], i ? "," : "");
	return true;
}

static bool print_samples(struct scope *scope, const stretches_t *stretches)
{
	fputs("\"samples\":[", scope->out);
	for (size_t i = 0; i < stretches->n; i++) {
		fputs(i ? ",\n[" : "\n[", scope->out);
		if (!print_stack(scope, stretches->items[i].node))
			return false;
		putc(']', scope->out);
	}
	fputs("\n],\"weights\":[", scope->out);
	for (size_t i = 0; i < stretches->n; i++)
		fprintf(scope->out, "%s%" PRIu64, i ? "," : "", stretches->items[i].weight);
	putc(']', scope->out);
	return true;
}

static bool print_thread(struct scope *scope, uint32_t thread)
{
	const stretches_t *stretches = &scope->threads[thread];
	const struct sf_profile_thread *t = &scope->profile->threads[thread];
	SF_CLEANUP(free) char *name = NULL;
	uint64_t total = 0;

	for (size_t i = 0; i < stretches->n; i++)
		total += stretches->items[i].weight;
	if (asprintf(&name, "%s (%d)", sf_tally_thread_name(scope->profile, thread), t->tid) < 0)
		return false;
	fputs("{\"type\":\"sampled\",\"name\":", scope->out);
	if (!sf_json_string(scope->out, name))
		return false;
	fprintf(scope->out,
		",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n", scope->unit, total);
	if (!print_samples(scope, stretches))
		return false;
	putc('}', scope->out);
	return true;
}

static bool print_threads(struct scope *scope)
{
	const char *between = "\n";

	fputs("\"profiles\":[", scope->out);
	for (uint32_t i = 0; i < scope->profile->n_threads; i++) {
		if (!scope->threads[i].n)
			continue;
		fputs(between, scope->out);
		between = ",\n";
		if (!print_thread(scope, i))
			return false;
	}
	fputs("\n]", scope->out);
	return true;
}

static bool print_scope(struct scope *scope)
{
	const struct sf_profile *profile = scope->profile;

	fputs("{\"$schema\":\"" SCHEMA "\",\n\"exporter\":\"stillframe " SF_VERSION
	      "\",\n\"name\":",
	      scope->out);
	if (!sf_json_string(scope->out, profile->command ? profile->command : ""))
		return false;
	fputs(",\n", scope->out);
	if (!print_frames(scope))
		return false;
	fputs(",\n", scope->out);
	if (!print_threads(scope))
		return false;
	fputs("}\n", scope->out);
	return true;
}

static bool add_stretch(stretches_t *stretches, uint32_t node, uint64_t weight)
{
	struct stretch *last = stretches->n ? &stretches->items[stretches->n - 1] : NULL;

	if (last && last->node == node) {
		last->weight += weight;
		return true;
	}
	return sf_vec_push(stretches, (struct stretch){ node, weight });
}

static bool add_samples(struct scope *scope, enum sf_clock clock)
{
	const struct sf_profile *profile = scope->profile;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sf_profile_sample *sample = &profile->samples[i];
		uint64_t weight = sf_profile_weight(sample, clock);

		if (weight && !add_stretch(&scope->threads[sample->thread], sample->node, weight))
			return false;
	}
	return true;
}

static bool write_speedscope(const struct sf_profile *profile, const struct sf_filter *filter,
			     FILE *out, struct sf_error *err)
{
	SF_CLEANUP(free) stretches_t *threads = calloc(profile->n_threads + 1, sizeof(*threads));
	SF_CLEANUP(free) uint32_t *marked = calloc(profile->n_functions + 1, sizeof(*marked));
	struct scope scope = {
		.profile = profile, .threads = threads, .marked = marked, .unit = unit_of(profile, filter->clock), .out = out
	};
	bool done;

	if (!threads || !marked)
		return sf_fail_memory(err);
	done = add_samples(&scope, filter->clock) && print_scope(&scope);
	for (uint32_t i = 0; i < profile->n_threads; i++)
		sf_vec_deinit(&threads[i]);
	sf_vec_deinit(&scope.path);
	return done ? sf_export_finish(out, err) : sf_fail_memory(err);
}

const struct sf_exporter sf_export_speedscope = {
	.name = "speedscope",
	.summary = "JSON, a profile for each thread, in order of time",
	.suffix = ".speedscope.json",
	.write = write_speedscope,
};
