/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pprof's locations. A pprof location is an address with its function and the functions inlined
 * into it. A run of inlined frames and the frame that they are inlined into therefore become one
 * location. Addresses are those in the file: every mapping starts at 0.
 */
#include <string.h>

#include "base/cleanup.h"
#include "export/pprof.h"
#include "export/tally.h"

#define FILE_PAGE 4096u

static line_t line_of(struct sf_pprof *pprof, uint32_t frame)
{
	const struct sf_profile *profile = pprof->profile;
	line_t line = PERFTOOLS__PROFILES__LINE__INIT;

	line.function_id = frame ? profile->frames[frame].function : sf_pprof_no_stack(profile);
	line.line = frame ? profile->frames[frame].line : 0;
	pprof->function_used[line.function_id] = true;
	return line;
}

/* The last frame is the one that is really there; its module and address are the location's. */
static void place(struct sf_pprof *pprof, Perftools__Profiles__Location *location)
{
	const struct sf_profile *profile = pprof->profile;
	uint32_t number = pprof->frames.items[pprof->frames.n - 1];
	const struct sf_profile_frame *frame = &profile->frames[number];
	uint32_t module = number ? profile->functions[frame->function].module : 0;

	if (!module)
		return;
	location->mapping_id = module;
	location->address = frame->address;
	if (frame->address >= pprof->module_end[module - 1])
		pprof->module_end[module - 1] = frame->address + 1;
}

static bool put_location(struct sf_pprof *pprof, uint32_t id)
{
	const size_t n = pprof->frames.n;
	SF_CLEANUP(free) line_t *lines = calloc(n, sizeof(*lines));
	SF_CLEANUP(free) line_t **pointers = calloc(n, sizeof(*pointers));
	Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT, *only = &location;
	profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

	if (!lines || !pointers)
		return false;
	for (size_t i = 0; i < n; i++) {
		lines[i] = line_of(pprof, pprof->frames.items[i]);
		pointers[i] = &lines[i];
	}
	location.id = id;
	location.line = pointers;
	location.n_line = n;
	place(pprof, &location);
	part.location = &only;
	part.n_location = 1;
	sf_pprof_put(pprof, &part);
	return true;
}

/* Adds the location of pprof->frames to the stack. */
static bool end_location(struct sf_pprof *pprof)
{
	bool is_new;
	uint32_t id = sf_intern_add(pprof->locations, pprof->frames.items,
				    pprof->frames.n * sizeof(uint32_t), &is_new);

	if (!id || (is_new && !put_location(pprof, id)))
		return false;
	pprof->frames.n = 0;
	return sf_vec_push(&pprof->stack, id);
}

/* An inlined frame waits for the one that it is inlined into. */
bool sf_pprof_stack(struct sf_pprof *pprof, uint32_t node)
{
	const struct sf_profile *profile = pprof->profile;

	pprof->stack.n = 0;
	pprof->frames.n = 0;
	if (!node)
		return sf_vec_push(&pprof->frames, 0) && end_location(pprof);
	for (; node; node = profile->nodes[node].parent) {
		uint32_t frame = profile->nodes[node].frame;

		if (!sf_vec_push(&pprof->frames, frame))
			return false;
		if (profile->frames[frame].inlined && profile->nodes[node].parent)
			continue;
		if (!end_location(pprof))
			return false;
	}
	return true;
}

static void put_function(struct sf_pprof *pprof, uint32_t number)
{
	const struct sf_profile *profile = pprof->profile;
	Perftools__Profiles__Function message = PERFTOOLS__PROFILES__FUNCTION__INIT, *only = &message;
	profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

	message.id = number;
	if (number < profile->n_functions) {
		const struct sf_profile_function *function = &profile->functions[number];

		message.name = sf_pprof_string(pprof, sf_profile_string(profile, function->name));
		message.system_name = sf_pprof_string(pprof, sf_profile_string(profile, function->linkage));
		message.filename = sf_pprof_string(pprof, sf_profile_string(profile, function->file));
	} else {
		message.name = sf_pprof_string(pprof, SF_NO_STACK);
	}
	part.function = &only;
	part.n_function = 1;
	sf_pprof_put(pprof, &part);
}

static void put_mapping(struct sf_pprof *pprof, uint32_t module)
{
	const struct sf_profile *profile = pprof->profile;
	const struct sf_profile_module *m = &profile->modules[module];
	Perftools__Profiles__Mapping message = PERFTOOLS__PROFILES__MAPPING__INIT, *only = &message;
	profile_t part = PERFTOOLS__PROFILES__PROFILE__INIT;

	message.id = module + 1;
	message.memory_limit = (pprof->module_end[module] + FILE_PAGE - 1) / FILE_PAGE * FILE_PAGE;
	message.filename = sf_pprof_string(pprof, sf_profile_string(profile, m->path));
	message.build_id = sf_pprof_string(pprof, sf_profile_string(profile, m->build_id));
	message.has_functions = message.has_filenames = true;
	message.has_line_numbers = message.has_inline_frames = true;
	part.mapping = &only;
	part.n_mapping = 1;
	sf_pprof_put(pprof, &part);
}

/* The module of main(), which pprof wants to see first; else the first that is used. */
static uint32_t main_module(const struct sf_pprof *pprof)
{
	const struct sf_profile *profile = pprof->profile;

	for (uint32_t i = 1; i < profile->n_functions; i++) {
		const struct sf_profile_function *function = &profile->functions[i];

		if (pprof->function_used[i] && function->module &&
		    strcmp(sf_profile_string(profile, function->name), "main") == 0)
			return function->module - 1;
	}
	return 0;
}

void sf_pprof_places(struct sf_pprof *pprof)
{
	uint32_t n = pprof->profile->n_modules, first = main_module(pprof);

	for (uint32_t i = 1; i <= sf_pprof_no_stack(pprof->profile); i++) {
		if (pprof->function_used[i])
			put_function(pprof, i);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t module = i == 0 ? first : i <= first ? i - 1 : i;

		if (pprof->module_end[module])
			put_mapping(pprof, module);
	}
}
