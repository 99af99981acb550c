/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's format: a gzip-compressed message, see proto/profile.proto.
 *
 * Stacks of locations (pprof_places.c), innermost first. Interned numbers are dense and start at 1,
 * just like pprof's string and location numbers, so they are used as they are; functions keep their
 * numbers too, and a module's is one more.
 */
#include "export/pprof.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/export.h"
#include "export/tally.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

typedef Perftools__Profiles__Label label_t;
typedef Perftools__Profiles__ValueType value_type_t;

/* zlib's way to say: a gzip header, and the largest window. */
#define WINDOW_BITS (16 + MAX_WBITS)
#define MEMORY_LEVEL 8

/* --- compression --- */

/* False when memory ran out. */
static bool gzip_init(struct sf_gzip *gzip, FILE *out)
{
	*gzip = (struct sf_gzip){ .out = out };
	return deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS,
			    MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
}

static void gzip_deinit(struct sf_gzip *gzip)
{
	deflateEnd(&gzip->stream);
}

/* Runs until all input is taken, and with Z_FINISH until all output is out. */
static void deflate_all(struct sf_gzip *gzip, int flush)
{
	unsigned char buffer[16384];

	do {
		gzip->stream.next_out = buffer;
		gzip->stream.avail_out = sizeof(buffer);
		deflate(&gzip->stream, flush);
		fwrite(buffer, 1, sizeof(buffer) - gzip->stream.avail_out, gzip->out);
	} while (gzip->stream.avail_out == 0);
}

static void gzip_write(struct sf_gzip *gzip, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;

	while (size) {
		uInt part = size > INT_MAX ? INT_MAX : (uInt)size;

		gzip->stream.next_in = (unsigned char *)p;
		gzip->stream.avail_in = part;
		deflate_all(gzip, Z_NO_FLUSH);
		p += part;
		size -= part;
	}
}

/* Nothing may be written behind it. */
static void gzip_finish(struct sf_gzip *gzip)
{
	gzip->stream.next_in = NULL;
	gzip->stream.avail_in = 0;
	deflate_all(gzip, Z_FINISH);
}

/* --- samples --- */

/* X(name of the value, its unit, what a row has of it) */
#define TIMES(X)                                                                                   \
	X("cpu", "nanoseconds", row->cpu_ns)                                                       \
	X("wall", "nanoseconds", row->wall_ns)                                                     \
	X("offcpu", "nanoseconds", row->offcpu_ns)
#define MAX_VALUES 5

struct value {
	const char *name, *unit;
	int64_t amount;
};

/* The values of a row: those that its profile has. How many; amounts without a row are 0. */
static size_t list_values(const struct sf_profile *profile, const struct sf_tally_row *of, struct value ret[MAX_VALUES])
{
	static const struct sf_tally_row none;
	const struct sf_tally_row *row = of ? of : &none;
	size_t n = 0;

	ret[n++] = (struct value){ "samples", "count", (int64_t)row->ticks };
#define X(name, unit, field)                                                                       \
	if (!profile->measure.is_all)                                                              \
		ret[n++] = (struct value){ name, unit, (int64_t)(field) };
	TIMES(X)
#undef X
	if (profile->measure.name)
		ret[n++] = (struct value){ profile->measure.name, profile->measure.unit, (int64_t)row->amount };
	return n;
}

#define MAX_LABELS 7

struct labels {
	struct sf_pprof *pprof;
	label_t list[MAX_LABELS], *pointers[MAX_LABELS];
	size_t n;
};

/* A label has a text, or a number where `text` is NULL. */
static void add_label(struct labels *labels, const char *key, const char *text, int64_t number)
{
	label_t *label = labels->pointers[labels->n] = &labels->list[labels->n];

	perftools__profiles__label__init(label);
	label->key = sf_pprof_string(labels->pprof, key);
	label->str = sf_pprof_string(labels->pprof, text);
	label->num = number;
	labels->n++;
}

/* A label that the sample carries in the recording; 0: none. */
static void add_own_label(struct labels *labels, uint32_t number)
{
	const struct sf_profile *profile = labels->pprof->profile;

	if (number)
		add_label(labels, sf_profile_string(profile, profile->labels[number - 1].key),
			  sf_profile_string(profile, profile->labels[number - 1].value), 0);
}

static void add_labels(struct labels *labels, const struct sf_tally_row *row)
{
	const struct sf_profile *profile = labels->pprof->profile;
	const struct sf_profile_thread *thread = &profile->threads[row->thread];

	add_label(labels, "thread", sf_tally_thread_name(profile, row->thread), 0);
	add_label(labels, "tid", NULL, thread->tid);
	add_label(labels, "pid", NULL, thread->pid);
	add_label(labels, "state", sf_state_word(row->state), 0);
	add_own_label(labels, row->label);
	add_own_label(labels, row->second_label);
	/* Calls that are inlined into the innermost frame may be missing. */
	if (row->node && profile->frames[profile->nodes[row->node].frame].approximate)
		add_label(labels, "approximate", "inlined calls", 0);
}

static bool put_sample(struct sf_pprof *pprof, const struct sf_tally_row *row)
{
	struct value values[MAX_VALUES];
	int64_t amounts[MAX_VALUES];
	const size_t n_values = list_values(pprof->profile, row, values);
	struct labels labels = { .pprof = pprof };
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *only = &sample;
	profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

	if (!sf_pprof_stack(pprof, row->node))
		return false;
	add_labels(&labels, row);
	for (size_t i = 0; i < n_values; i++)
		amounts[i] = values[i].amount;
	sample.location_id = pprof->stack.items;
	sample.n_location_id = pprof->stack.n;
	sample.value = amounts;
	sample.n_value = n_values;
	sample.label = labels.pointers;
	sample.n_label = labels.n;
	part.sample = &only;
	part.n_sample = 1;
	sf_pprof_put(pprof, &part);
	return true;
}

static value_type_t value_type(struct sf_pprof *pprof, const char *name, const char *unit)
{
	value_type_t type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	type.type = sf_pprof_string(pprof, name);
	type.unit = sf_pprof_string(pprof, unit);
	return type;
}

/* The fields of the message that occur once, and the types of its values. */
static void put_facts(struct sf_pprof *pprof, enum sf_clock clock)
{
	const struct sf_profile *profile = pprof->profile;
	const struct sf_profile_measure *measure = &profile->measure;
	value_type_t types[MAX_VALUES], *pointers[MAX_VALUES];
	value_type_t period = measure->is_all ? value_type(pprof, measure->name, measure->unit) : value_type(pprof, "cpu", "nanoseconds");
	struct value values[MAX_VALUES];
	const size_t n_values = list_values(profile, NULL, values);
	int64_t comments[] = { sf_pprof_string(pprof, profile->command),
			       sf_pprof_string(pprof, "stillframe " SF_VERSION) };
	profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

	for (size_t i = 0; i < n_values; i++) {
		types[i] = value_type(pprof, values[i].name, values[i].unit);
		pointers[i] = &types[i];
	}
	part.sample_type = pointers;
	part.n_sample_type = n_values;
	part.default_sample_type = sf_pprof_string(pprof, clock == SF_CLOCK_EVENT ? measure->name : sf_clock_word(clock));
	part.period_type = &period;
	if (profile->rate_mhz && !measure->is_all)
		part.period = (int64_t)(1000000000000u / profile->rate_mhz);
	part.time_nanos = (int64_t)profile->start_unix_ns;
	part.duration_nanos = (int64_t)profile->duration_ns;
	part.comment = comments[0] ? comments : comments + 1;
	part.n_comment = comments[0] ? 2 : 1;
	sf_pprof_put(pprof, &part);
}

/* Last, when no string can be new any more. */
static void put_strings(struct sf_pprof *pprof)
{
	for (uint32_t i = 0; i <= sf_intern_count(pprof->strings); i++) {
		char *text = i ? (char *)sf_intern_get(pprof->strings, i, NULL) : (char *)"";
		profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

		part.string_table = &text;
		part.n_string_table = 1;
		sf_pprof_put(pprof, &part);
	}
}

static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
	gzip_write(&((struct sf_pprof *)buffer)->gzip, bytes, size);
}

static bool put_all(struct sf_pprof *pprof, const struct sf_tally *tally, enum sf_clock clock)
{
	put_facts(pprof, clock);
	for (size_t i = 0; i < tally->n_rows; i++) {
		if (!put_sample(pprof, &tally->rows[i]))
			return false;
	}
	sf_pprof_places(pprof);
	put_strings(pprof);
	gzip_finish(&pprof->gzip);
	return !pprof->no_memory;
}

static bool write_pprof(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
			struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = NULL;
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *strings = sf_intern_create();
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *locations = sf_intern_create();
	SF_CLEANUP(free) bool *used = calloc((size_t)sf_pprof_no_stack(profile) + 1, sizeof(*used));
	SF_CLEANUP(free) uint64_t *ends = calloc((size_t)profile->n_modules + 1, sizeof(*ends));
	struct sf_pprof pprof = { .base.append = append, .profile = profile, .strings = strings,
				  .locations = locations, .function_used = used, .module_end = ends };
	bool done;

	if (!strings || !locations || !used || !ends)
		return sf_fail_memory(err);
	if (!sf_tally_create(profile, filter->clock, true, &tally, err))
		return false;
	if (!gzip_init(&pprof.gzip, out))
		return sf_fail_memory(err);
	done = put_all(&pprof, tally, filter->clock);
	gzip_deinit(&pprof.gzip);
	sf_vec_deinit(&pprof.frames);
	sf_vec_deinit(&pprof.stack);
	return done ? sf_export_finish(out, err) : sf_fail_memory(err);
}

const struct sf_exporter sf_export_pprof = {
	.name = "pprof",
	.summary = "for `go tool pprof` and what reads its format, gzip-compressed",
	.suffix = ".pb.gz",
	.binary = true,
	.write = write_pprof,
};
