/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's format: a gzip-compressed message, see proto/profile.proto.
 *
 * Stacks of locations, innermost first. A location is an address: the function there and those
 * inlined into it, so a run of inlined frames and the frame that they are inlined into become one.
 * Interned numbers are dense and start at 1, just like pprof's string and location numbers, so
 * they are used as they are; functions keep their numbers too, and a module's is one more.
 *
 * Addresses are those in the file: every mapping starts at 0.
 */
#include "export/export.h"

#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "export/gzip.h"
#include "export/pool.h"
#include "export/tally.h"
#include "profile.pb-c.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

typedef Perftools__Profiles__Profile profile_t;
typedef Perftools__Profiles__ValueType value_type_t;
typedef Perftools__Profiles__Sample sample_t;
typedef Perftools__Profiles__Label label_t;
typedef Perftools__Profiles__Mapping mapping_t;
typedef Perftools__Profiles__Location location_t;
typedef Perftools__Profiles__Line line_t;
typedef Perftools__Profiles__Function function_t;

#define FILE_PAGE 4096u

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

struct builder {
	const struct sf_profile *profile;
	struct sf_pool pool;
	struct sf_intern *strings, *locations;  /* a location is its frames' numbers */
	SF_VEC(uint32_t) frames;                /* of the location at hand, innermost first */
	SF_VEC(uint64_t) stack;
	SF_VEC(location_t *) location_list;
	bool *function_used;
	uint64_t *module_end;
	bool no_memory;
	profile_t message;
};

/* Zeroed. On failure the builder remembers and the caller returns at once. */
static void *take(struct builder *builder, size_t n, size_t size)
{
	void *memory = sf_pool_take(&builder->pool, n, size);

	builder->no_memory |= !memory;
	return memory;
}

#define take_array(builder, type, n) ((type *)take((builder), (n), sizeof(type)))

#define take_message(builder, type, init)                                                          \
	({                                                                                         \
		type *message_ = take_array((builder), type, 1);                                   \
		if (message_)                                                                      \
			init(message_);                                                            \
		message_;                                                                          \
	})

/* The index of a string; "" is always 0. */
static int64_t string(struct builder *builder, const char *text)
{
	uint32_t number;

	if (!text || !*text)
		return 0;
	number = sf_intern_string(builder->strings, text);
	builder->no_memory |= !number;
	return number;
}

static int64_t profile_string(struct builder *builder, uint32_t number)
{
	return string(builder, sf_profile_string(builder->profile, number));
}

/* Samples without any frame stand in a function of their own, behind the last real one. */
static uint32_t no_stack_function(const struct builder *builder)
{
	return builder->profile->n_functions ? builder->profile->n_functions : 1;
}

static void fill_line(struct builder *builder, line_t *line, uint32_t frame)
{
	const struct sf_profile *profile = builder->profile;

	perftools__profiles__line__init(line);
	line->function_id = frame ? profile->frames[frame].function : no_stack_function(builder);
	line->line = frame ? profile->frames[frame].line : 0;
	builder->function_used[line->function_id] = true;
}

static bool add_lines(struct builder *builder, location_t *location)
{
	size_t n = builder->frames.n;
	line_t *lines = take_array(builder, line_t, n);

	location->line = take_array(builder, line_t *, n);
	if (!lines || !location->line)
		return false;
	location->n_line = n;
	for (size_t i = 0; i < n; i++) {
		fill_line(builder, &lines[i], builder->frames.items[i]);
		location->line[i] = &lines[i];
	}
	return true;
}

/* The last frame is the one that is really there; its module and address are the location's. */
static void place(struct builder *builder, location_t *location)
{
	const struct sf_profile *profile = builder->profile;
	uint32_t number = builder->frames.items[builder->frames.n - 1];
	const struct sf_profile_frame *frame = &profile->frames[number];
	uint32_t module = number ? profile->functions[frame->function].module : 0;

	if (!module)
		return;
	location->mapping_id = module;
	location->address = frame->address;
	if (frame->address >= builder->module_end[module - 1])
		builder->module_end[module - 1] = frame->address + 1;
}

/* Of builder->frames; 0 when memory ran out. */
static uint64_t location_id(struct builder *builder)
{
	bool is_new;
	location_t *location;
	uint32_t number = sf_intern_add(builder->locations, builder->frames.items,
					builder->frames.n * sizeof(uint32_t), &is_new);

	if (!number || !is_new)
		return number;
	location = take_message(builder, location_t, perftools__profiles__location__init);
	if (!location || !sf_vec_push(&builder->location_list, location))
		return 0;
	location->id = number;
	if (!add_lines(builder, location))
		return 0;
	place(builder, location);
	return number;
}

static bool end_location(struct builder *builder)
{
	uint64_t id = location_id(builder);

	builder->frames.n = 0;
	return id && sf_vec_push(&builder->stack, id);
}

/* Fills builder->stack. An inlined frame waits for the one that it is inlined into. */
static bool collect_stack(struct builder *builder, uint32_t node)
{
	const struct sf_profile *profile = builder->profile;

	builder->stack.n = 0;
	builder->frames.n = 0;
	if (!node)
		return sf_vec_push(&builder->frames, 0) && end_location(builder);
	for (; node; node = profile->nodes[node].parent) {
		uint32_t frame = profile->nodes[node].frame;

		if (!sf_vec_push(&builder->frames, frame))
			return false;
		if (profile->frames[frame].inlined && profile->nodes[node].parent)
			continue;
		if (!end_location(builder))
			return false;
	}
	return true;
}

static label_t *text_label(struct builder *builder, const char *key, const char *text)
{
	label_t *label = take_message(builder, label_t, perftools__profiles__label__init);

	if (label) {
		label->key = string(builder, key);
		label->str = string(builder, text);
	}
	return label;
}

static label_t *number_label(struct builder *builder, const char *key, int64_t number)
{
	label_t *label = take_message(builder, label_t, perftools__profiles__label__init);

	if (label) {
		label->key = string(builder, key);
		label->num = number;
	}
	return label;
}

static bool add_labels(struct builder *builder, sample_t *sample, const struct sf_tally_row *row)
{
	const struct sf_profile_thread *thread = &builder->profile->threads[row->thread];

	sample->label = take_array(builder, label_t *, 4);
	if (!sample->label)
		return false;
	sample->label[sample->n_label++] = text_label(
		builder, "thread", sf_tally_thread_name(builder->profile, row->thread));
	sample->label[sample->n_label++] = number_label(builder, "tid", thread->tid);
	sample->label[sample->n_label++] = number_label(builder, "pid", thread->pid);
	sample->label[sample->n_label++] = text_label(builder, "state", sf_state_word(row->state));
	return !builder->no_memory;
}

static bool add_values(struct builder *builder, sample_t *sample, const struct sf_tally_row *row)
{
	sample->value = take_array(builder, int64_t, N_VALUES);
	if (!sample->value)
		return false;
#define X(name, unit, field) sample->value[sample->n_value++] = (int64_t)(field);
	VALUES(X)
#undef X
	return true;
}

static sample_t *make_sample(struct builder *builder, const struct sf_tally_row *row)
{
	sample_t *sample = take_message(builder, sample_t, perftools__profiles__sample__init);

	if (!sample || !collect_stack(builder, row->node))
		return NULL;
	sample->location_id = take_array(builder, uint64_t, builder->stack.n);
	if (!sample->location_id)
		return NULL;
	sample->n_location_id = builder->stack.n;
	memcpy(sample->location_id, builder->stack.items, builder->stack.n * sizeof(uint64_t));
	return add_values(builder, sample, row) && add_labels(builder, sample, row) ? sample : NULL;
}

static bool add_samples(struct builder *builder, const struct sf_tally *tally)
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
	message->location = builder->location_list.items;
	message->n_location = builder->location_list.n;
	return true;
}

static bool add_function(struct builder *builder, uint32_t number, const char *name)
{
	function_t *message = take_message(builder, function_t, perftools__profiles__function__init);

	if (!message)
		return false;
	message->id = number;
	message->name = string(builder, name);
	builder->message.function[builder->message.n_function++] = message;
	if (number >= builder->profile->n_functions)
		return true;
	message->system_name = profile_string(builder, builder->profile->functions[number].linkage);
	message->filename = profile_string(builder, builder->profile->functions[number].file);
	return true;
}

static bool add_functions(struct builder *builder)
{
	const struct sf_profile *profile = builder->profile;
	uint32_t last = no_stack_function(builder);

	builder->message.function = take_array(builder, function_t *, last + 1);
	if (!builder->message.function)
		return false;
	for (uint32_t i = 1; i <= last; i++) {
		const char *name = SF_NO_STACK;

		if (!builder->function_used[i])
			continue;
		if (i < profile->n_functions)
			name = sf_profile_string(profile, profile->functions[i].name);
		if (!add_function(builder, i, name))
			return false;
	}
	return true;
}

static bool add_mapping(struct builder *builder, uint32_t module)
{
	const struct sf_profile_module *m = &builder->profile->modules[module];
	mapping_t *message = take_message(builder, mapping_t, perftools__profiles__mapping__init);

	if (!message)
		return false;
	message->id = module + 1;
	message->memory_limit = (builder->module_end[module] + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE;
	message->filename = profile_string(builder, m->path);
	message->build_id = profile_string(builder, m->build_id);
	message->has_functions = true;
	message->has_filenames = true;
	message->has_line_numbers = true;
	message->has_inline_frames = true;
	builder->message.mapping[builder->message.n_mapping++] = message;
	return true;
}

/* The module of main(), which pprof wants to see first; else the first that is used. */
static uint32_t main_module(const struct builder *builder)
{
	const struct sf_profile *profile = builder->profile;

	for (uint32_t i = 1; i < profile->n_functions; i++) {
		const struct sf_profile_function *function = &profile->functions[i];

		if (builder->function_used[i] && function->module &&
		    strcmp(sf_profile_string(profile, function->name), "main") == 0)
			return function->module - 1;
	}
	return 0;
}

static bool add_mappings(struct builder *builder)
{
	uint32_t n = builder->profile->n_modules, first = main_module(builder);

	builder->message.mapping = take_array(builder, mapping_t *, n + 1);
	if (!builder->message.mapping)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t module = i == 0 ? first : i <= first ? i - 1 : i;

		if (builder->module_end[module] && !add_mapping(builder, module))
			return false;
	}
	return true;
}

static value_type_t *value_type(struct builder *builder, const char *name, const char *unit)
{
	value_type_t *type =
		take_message(builder, value_type_t, perftools__profiles__value_type__init);

	if (type) {
		type->type = string(builder, name);
		type->unit = string(builder, unit);
	}
	return type;
}

static bool add_types(struct builder *builder, enum sf_clock clock)
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

static bool add_facts(struct builder *builder)
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
static bool add_strings(struct builder *builder)
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

static bool build(struct builder *builder, const struct sf_tally *tally, enum sf_clock clock)
{
	perftools__profiles__profile__init(&builder->message);
	builder->function_used = take_array(builder, bool, no_stack_function(builder) + 1);
	builder->module_end = take_array(builder, uint64_t, builder->profile->n_modules + 1);
	return !builder->no_memory && add_types(builder, clock) && add_facts(builder) &&
	       add_samples(builder, tally) && add_functions(builder) && add_mappings(builder) &&
	       add_strings(builder);
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
	struct builder builder = {
		.profile = profile,
		.strings = strings,
		.locations = locations,
	};
	bool done;

	if (!strings || !locations)
		return sf_fail_memory(err);
	if (!sf_tally_create(profile, filter, &tally, err))
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
