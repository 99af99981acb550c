/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's format: a gzip-compressed message, see proto/profile.proto.
 *
 * Stacks of locations (pprof_places.c), innermost first. Interned numbers are dense and start at 1,
 * just like pprof's string and location numbers, so they are used as they are; functions keep their
 * numbers too, and a module's is one more.
 */
#include "export/export.h"

#include <string.h>

#include "export/gzip.h"
#include "export/pprof_builder.h"
#include "export/tally.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

/* X(name of the value, its unit, what a row has of it) */
#define VALUES(X)                                                                                  \
	X("samples", "count", row->ticks)                                                          \
	X("cpu", "nanoseconds", row->cpu_ns)                                                       \
	X("wall", "nanoseconds", row->wall_ns)                                                     \
	X("offcpu", "nanoseconds", row->offcpu_ns)

static const struct value {
	const char *name, *unit;
} values[] = {
#define X(name, unit, field) { name, unit },
	VALUES(X)
#undef X
};
#define N_VALUES (sizeof(values) / sizeof(*values))

static const char *const value_of_clock[] = {
	[SF_CLOCK_WALL] = "wall",
	[SF_CLOCK_CPU] = "cpu",
	[SF_CLOCK_OFFCPU] = "offcpu",
};

static label_t *text_label(struct sf_pprof_builder *builder, const char *key, const char *text)
{
	label_t *label = take_message(builder, label_t, perftools__profiles__label__init);

	if (label) {
		label->key = string(builder, key);
		label->str = string(builder, text);
	}
	return label;
}

static label_t *number_label(struct sf_pprof_builder *builder, const char *key, int64_t number)
{
	label_t *label = take_message(builder, label_t, perftools__profiles__label__init);

	if (label) {
		label->key = string(builder, key);
		label->num = number;
	}
	return label;
}

/* Calls that are inlined into the innermost frame may be missing. */
static bool is_approximate(const struct sf_profile *profile, uint32_t node)
{
	return profile->frames[profile->nodes[node].frame].approximate;
}

static bool add_labels(struct sf_pprof_builder *builder, sample_t *sample,
		       const struct sf_tally_row *row)
{
	const struct sf_profile_thread *thread = &builder->profile->threads[row->thread];

	sample->label = take_array(builder, label_t *, 6);
	if (!sample->label)
		return false;
	sample->label[sample->n_label++] = text_label(
		builder, "thread", sf_tally_thread_name(builder->profile, row->thread));
	sample->label[sample->n_label++] = number_label(builder, "tid", thread->tid);
	sample->label[sample->n_label++] = number_label(builder, "pid", thread->pid);
	sample->label[sample->n_label++] = text_label(builder, "state", sf_state_word(row->state));
	if (row->label) {
		const struct sf_profile_label *label = &builder->profile->labels[row->label - 1];

		sample->label[sample->n_label++] =
			text_label(builder, sf_profile_string(builder->profile, label->key),
				   sf_profile_string(builder->profile, label->value));
	}
	if (row->node && is_approximate(builder->profile, row->node))
		sample->label[sample->n_label++] =
			text_label(builder, "approximate", "inlined calls");
	return !builder->no_memory;
}

static bool add_values(struct sf_pprof_builder *builder, sample_t *sample,
		       const struct sf_tally_row *row)
{
	sample->value = take_array(builder, int64_t, N_VALUES);
	if (!sample->value)
		return false;
#define X(name, unit, field) sample->value[sample->n_value++] = (int64_t)(field);
	VALUES(X)
#undef X
	return true;
}

static sample_t *make_sample(struct sf_pprof_builder *builder, const struct sf_tally_row *row)
{
	sample_t *sample = take_message(builder, sample_t, perftools__profiles__sample__init);

	if (!sample || !sf_pprof_stack(builder, row->node))
		return NULL;
	sample->location_id = take_array(builder, uint64_t, builder->stack.n);
	if (!sample->location_id)
		return NULL;
	sample->n_location_id = builder->stack.n;
	memcpy(sample->location_id, builder->stack.items, builder->stack.n * sizeof(uint64_t));
	return add_values(builder, sample, row) && add_labels(builder, sample, row) ? sample : NULL;
}

static bool add_samples(struct sf_pprof_builder *builder, const struct sf_tally *tally)
{
	profile_t *message = &builder->message;

	message->sample = take_array(builder, sample_t *, tally->n_rows);
	if (!message->sample)
		return false;
	for (size_t i = 0; i < tally->n_rows; i++) {
		message->sample[i] = make_sample(builder, &tally->rows[i]);
		if (!message->sample[i])
			return false;
	}
	message->n_sample = tally->n_rows;
	return true;
}

static value_type_t *value_type(struct sf_pprof_builder *builder, const char *name,
				const char *unit)
{
	value_type_t *type =
		take_message(builder, value_type_t, perftools__profiles__value_type__init);

	if (type) {
		type->type = string(builder, name);
		type->unit = string(builder, unit);
	}
	return type;
}

static bool add_types(struct sf_pprof_builder *builder, enum sf_clock clock)
{
	profile_t *message = &builder->message;

	message->sample_type = take_array(builder, value_type_t *, N_VALUES);
	if (!message->sample_type)
		return false;
	for (size_t i = 0; i < N_VALUES; i++)
		message->sample_type[i] = value_type(builder, values[i].name, values[i].unit);
	message->n_sample_type = N_VALUES;
	message->default_sample_type = string(builder, value_of_clock[clock]);
	message->period_type = value_type(builder, "cpu", "nanoseconds");
	if (builder->profile->rate_mhz)
		message->period = (int64_t)(1000000000000u / builder->profile->rate_mhz);
	return !builder->no_memory;
}

static bool add_facts(struct sf_pprof_builder *builder)
{
	const struct sf_profile *profile = builder->profile;
	profile_t *message = &builder->message;

	message->time_nanos = (int64_t)profile->start_unix_ns;
	message->duration_nanos = (int64_t)profile->duration_ns;
	message->comment = take_array(builder, int64_t, 2);
	if (!message->comment)
		return false;
	if (profile->command && *profile->command)
		message->comment[message->n_comment++] = string(builder, profile->command);
	message->comment[message->n_comment++] = string(builder, "stillframe " SF_VERSION);
	return true;
}

/* Last, when no string can be new any more. */
static bool add_strings(struct sf_pprof_builder *builder)
{
	uint32_t n = sf_intern_count(builder->strings);
	profile_t *message = &builder->message;

	message->string_table = take_array(builder, char *, n + 1);
	if (!message->string_table || builder->no_memory)
		return false;
	message->string_table[0] = (char *)"";
	for (uint32_t i = 1; i <= n; i++)
		message->string_table[i] = (char *)sf_intern_get(builder->strings, i, NULL);
	message->n_string_table = n + 1;
	return true;
}

static bool build(struct sf_pprof_builder *builder, const struct sf_tally *tally,
		  enum sf_clock clock)
{
	perftools__profiles__profile__init(&builder->message);
	builder->function_used = take_array(builder, bool, no_stack_function(builder) + 1);
	builder->module_end = take_array(builder, uint64_t, builder->profile->n_modules + 1);
	return !builder->no_memory && add_types(builder, clock) && add_facts(builder) &&
	       add_samples(builder, tally) && sf_pprof_places(builder) && add_strings(builder);
}

struct sink {
	ProtobufCBuffer base;
	struct sf_gzip gzip;
};

static void append(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
	sf_gzip_write(&((struct sink *)buffer)->gzip, bytes, size);
}

static bool pack(const profile_t *message, FILE *out)
{
	struct sink sink = { .base.append = append };

	if (!sf_gzip_init(&sink.gzip, out))
		return false;
	protobuf_c_message_pack_to_buffer(&message->base, &sink.base);
	sf_gzip_finish(&sink.gzip);
	sf_gzip_deinit(&sink.gzip);
	return true;
}

static bool write_pprof(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
			struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = NULL;
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *strings = sf_intern_create();
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *locations = sf_intern_create();
	struct sf_pprof_builder builder = {
		.profile = profile,
		.strings = strings,
		.locations = locations,
	};
	bool done;

	if (!strings || !locations)
		return sf_fail_memory(err);
	if (!sf_tally_create(profile, filter, true, &tally, err))
		return false;
	done = build(&builder, tally, filter->clock) && pack(&builder.message, out);
	sf_vec_deinit(&builder.frames);
	sf_vec_deinit(&builder.stack);
	sf_vec_deinit(&builder.location_list);
	sf_pool_deinit(&builder.pool);
	return done ? sf_export_finish(out, err) : sf_fail_memory(err);
}

const struct sf_exporter sf_export_pprof = {
	.name = "pprof",
	.summary = "for `go tool pprof` and what reads its format, gzip-compressed",
	.suffix = ".pb.gz",
	.binary = true,
	.write = write_pprof,
};
