/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the tables of a recording share while they are loaded: each text and each function is kept once, modules
 * are found by their ids, and the frames of a file become frames of a profile.
 *
 * A frame of the file is an address; a frame of the profile is a function there. An address with
 * two inlined calls becomes three frames, which follow each other, innermost first, and a
 * stack through it gets three nodes.
 */
#include "recording/profile/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/location.h"
#include "base/search.h"

/*
 * The nodes of a hostile file may be 256 times its rows, and a report needs some 150 bytes for each. Beyond
 * the first number stacks are shown without what was inlined in their functions. Beyond the second the file
 * is refused.
 */
#define MAX_INLINED_NODES 1000000u
#define MAX_NODES (1u << 26)

uint32_t sf_loader_string(struct sf_loader *loader, const char *text)
{
	uint32_t number;

	if (!*text)
		return 0;
	number = sf_intern_string(loader->strings, text);
	return number ? number : UINT32_MAX;
}

uint32_t sf_loader_function(struct sf_loader *loader, const struct sf_profile_function *form)
{
	return sf_intern_add(loader->functions, form, sizeof(*form), NULL);
}

/* "name [word]"; UINT32_MAX when memory ran out. */
static uint32_t with_word(struct sf_loader *loader, uint32_t name, const char *word)
{
	SF_CLEANUP(free) char *text = NULL;
	int size = asprintf(&text, "%s [%s]", name ? (const char *)sf_intern_get(loader->strings, name, NULL) : "",
			    word);

	return size < 0 ? UINT32_MAX : sf_loader_string(loader, text);
}

uint32_t sf_loader_function_of_kind(struct sf_loader *loader, uint32_t function, uint8_t kind, bool inlined)
{
	struct sf_profile_function form;

	memcpy(&form, sf_intern_get(loader->functions, function, NULL), sizeof(form));
	form.kind = sf_kind_of_function(kind);
	if (loader->options.split_kinds && sf_kind_has_kinds(form.kind)) {
		form.kind = kind;
		form.name = with_word(loader, form.name, inlined ? "inlined" : sf_kind_word(kind));
	}
	return form.name == UINT32_MAX ? 0 : sf_loader_function(loader, &form);
}

uint32_t sf_loader_module(const struct sf_loader *loader, int64_t id)
{
	const size_t low = sf_count_before(loader->module_ids.n, i, loader->module_ids.items[i] < id);

	return low < loader->module_ids.n && loader->module_ids.items[low] == id ? (uint32_t)low + 1 : 0;
}

/* "[unknown in libfoo.so]", or the label of a wait or a cut. */
static uint32_t unnamed_function(struct sf_loader *loader, const struct sf_raw_frame *raw)
{
	struct sf_profile_function form = { .name = raw->label, .module = raw->module,
					 .kind = raw->kind };
	char name[SF_UNKNOWN_SIZE];
	const char *path = "";

	if (raw->kind == SF_KIND_WAIT || raw->kind == SF_KIND_CUT)
		return sf_loader_function(loader, &form);
	if (raw->module && loader->modules.items[raw->module - 1].path)
		path = sf_intern_get(loader->strings,
				     loader->modules.items[raw->module - 1].path, NULL);
	sf_location_unknown(path, name);
	form.name = sf_loader_string(loader, name);
	return form.name == UINT32_MAX ? 0 : sf_loader_function(loader, &form);
}

static bool push_frame(struct sf_loader *loader, const struct sf_raw_frame *raw,
		       const struct sf_raw_function *function)
{
	return function->function && sf_vec_push(&loader->frames, (struct sf_profile_frame){
		.function = function->function,
		.line = function->line,
		.address = raw->address,
		.inlined = function->inlined,
		.approximate = function->approximate,
		.via = raw->via,
		.kind = raw->kind,
	});
}

static bool expand_frame(struct sf_loader *loader, struct sf_raw_frame *raw)
{
	raw->expanded = (uint32_t)loader->frames.n;
	if (raw->n == 0) {
		struct sf_raw_function unnamed = { .function = unnamed_function(loader, raw) };

		return push_frame(loader, raw, &unnamed);
	}
	for (uint32_t i = 0; i < raw->n; i++) {
		if (!push_frame(loader, raw, &loader->raw_functions.items[raw->first + i]))
			return false;
	}
	return true;
}

bool sf_loader_expand_frames(struct sf_loader *loader, struct sf_error *err)
{
	if (!sf_vec_push(&loader->frames, (struct sf_profile_frame){ 0 }))
		return sf_fail_memory(err);
	for (size_t i = 0; i < loader->raw_frames.n; i++) {
		if (!expand_frame(loader, &loader->raw_frames.items[i]))
			return sf_fail_memory(err);
	}
	return true;
}

/* With a note, the first time. */
static bool leave_out_inlined(struct sf_loader *loader)
{
	struct sf_profile_note note = { .text = sf_loader_string(loader, "stacks have more than 1,000,000 "
				       "functions: later ones are shown without inlined calls") };

	if (loader->inlined_left_out)
		return true;
	loader->inlined_left_out = true;
	return note.text != UINT32_MAX && sf_vec_push(&loader->extra_notes, note);
}

uint32_t sf_loader_expand_stack(struct sf_loader *loader, uint32_t parent, uint32_t raw_frame)
{
	const struct sf_raw_frame *raw = &loader->raw_frames.items[raw_frame - 1];
	uint32_t node = parent;

	const uint32_t least = raw->n && loader->nodes.n >= MAX_INLINED_NODES ? raw->n - 1 : 0;

	if (least && !leave_out_inlined(loader))
		return 0;
	for (uint32_t i = raw->n ? raw->n : 1; i-- > least;) {
		struct sf_profile_node next = { .parent = node, .frame = raw->expanded + i };

		if (loader->nodes.n >= MAX_NODES || !sf_vec_push(&loader->nodes, next))
			return 0;
		node = (uint32_t)loader->nodes.n - 1;
	}
	return node;
}
