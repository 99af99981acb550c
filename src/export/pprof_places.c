/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes pprof's locations. A pprof location is an address with its function and the functions inlined
 * into it. A run of inlined frames and the frame that they are inlined into therefore become one
 * location. Addresses are those in the file: every mapping starts at 0.
 */
#include <string.h>

#include "export/pprof_builder.h"
#include "export/tally.h"

#define FILE_PAGE 4096u

static void fill_line(struct sf_pprof_builder *builder, line_t *line, uint32_t frame)
{
	const struct sf_profile *profile = builder->profile;

	perftools__profiles__line__init(line);
	line->function_id = frame ? profile->frames[frame].function : no_stack_function(builder);
	line->line = frame ? profile->frames[frame].line : 0;
	builder->function_used[line->function_id] = true;
}

static bool add_lines(struct sf_pprof_builder *builder, location_t *location)
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
static void place(struct sf_pprof_builder *builder, location_t *location)
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
static uint64_t location_id(struct sf_pprof_builder *builder)
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

static bool end_location(struct sf_pprof_builder *builder)
{
	uint64_t id = location_id(builder);

	builder->frames.n = 0;
	return id && sf_vec_push(&builder->stack, id);
}

/* An inlined frame waits for the one that it is inlined into. */
bool sf_pprof_stack(struct sf_pprof_builder *builder, uint32_t node)
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

static bool add_function(struct sf_pprof_builder *builder, uint32_t number, const char *name)
{
	function_t *message =
		take_message(builder, function_t, perftools__profiles__function__init);

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

static bool add_functions(struct sf_pprof_builder *builder)
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

static bool add_mapping(struct sf_pprof_builder *builder, uint32_t module)
{
	const struct sf_profile_module *m = &builder->profile->modules[module];
	mapping_t *message = take_message(builder, mapping_t, perftools__profiles__mapping__init);

	if (!message)
		return false;
	message->id = module + 1;
	message->memory_limit =
		(builder->module_end[module] + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE;
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
static uint32_t main_module(const struct sf_pprof_builder *builder)
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

static bool add_mappings(struct sf_pprof_builder *builder)
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

bool sf_pprof_places(struct sf_pprof_builder *builder)
{
	builder->message.location = builder->location_list.items;
	builder->message.n_location = builder->location_list.n;
	return add_functions(builder) && add_mappings(builder);
}
