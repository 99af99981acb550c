/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the functions of a recording that was cut short: its frames without names, sorted, so each address is named once. */
#include "recording/profile/loader.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/location.h"
#include "base/output.h"
#include "base/search.h"
#include "recording/store/schema.h"

struct unnamed {
	uint64_t address;
	uint32_t module, frame; /* places in the loader's arrays, modules from 1 */
};

struct sf_late_names {
	struct sf_loader *loader;
	SF_VEC(struct unnamed) frames;
	uint32_t module;              /* whose addresses are being named */
	SF_VEC(uint64_t) addresses;   /* of this module */
	SF_VEC(size_t) firsts;        /* beside it: the first of its frames */
};

static int compare(const void *left, const void *right)
{
	const struct unnamed *a = left, *b = right;

	return a->module != b->module ? sf_order(a->module, b->module) : sf_order(a->address, b->address);
}

static bool collect(struct sf_late_names *names)
{
	const struct sf_loader *loader = names->loader;

	for (size_t i = 0; i < loader->raw_frames.n; i++) {
		const struct sf_raw_frame *raw = &loader->raw_frames.items[i];
		struct unnamed frame = { raw->address, raw->module, (uint32_t)i };

		if (raw->kind == SF_KIND_NATIVE && raw->module && !raw->n &&
		    !sf_vec_push(&names->frames, frame))
			return false;
	}
	if (names->frames.n)
		qsort(names->frames.items, names->frames.n, sizeof(*names->frames.items), compare);
	return true;
}

/* The addresses of the module whose frames begin at `first`; false: no memory. */
static bool take_module(struct sf_late_names *names, size_t first, size_t *next_ret)
{
	size_t i;

	names->module = names->frames.items[first].module;
	names->addresses.n = names->firsts.n = 0;
	for (i = first; i < names->frames.n && names->frames.items[i].module == names->module; i++) {
		uint64_t address = names->frames.items[i].address;

		if (i > first && names->frames.items[i - 1].address == address)
			continue;
		if (!sf_vec_push(&names->addresses, address) || !sf_vec_push(&names->firsts, i))
			return false;
	}
	*next_ret = i;
	return true;
}

/* A text that comes from a file of symbols, as the profile's. */
static uint32_t string_of(struct sf_loader *loader, const char *text)
{
	SF_CLEANUP(free) char *copy = strndup(text ? text : "", SF_MAX_TEXT);

	if (!copy)
		return UINT32_MAX;
	if (!sf_is_text(copy))
		sf_sanitize(copy);
	return sf_loader_string(loader, copy);
}

static bool push_function(struct sf_late_names *names, const struct sf_location *name,
			  bool outermost)
{
	struct sf_loader *loader = names->loader;
	struct sf_profile_function form = {
		.name = string_of(loader, name->function),
		.linkage = string_of(loader, name->linkage),
		.file = string_of(loader, name->file),
		.module = names->module,
		.kind = SF_KIND_NATIVE,
	};
	struct sf_raw_function row = { .line = name->line, .approximate = name->approximate,
				       .inlined = name->inlined && !outermost };

	if (form.name == UINT32_MAX || form.linkage == UINT32_MAX || form.file == UINT32_MAX)
		return false;
	row.function = sf_loader_function(loader, &form);
	return row.function && sf_vec_push(&loader->raw_functions, row);
}

bool sf_late_names_put(struct sf_late_names *names, size_t index,
		       const struct sf_location *functions, size_t n)
{
	struct sf_loader *loader = names->loader;
	uint32_t first = (uint32_t)loader->raw_functions.n;
	uint64_t address = names->addresses.items[index];

	n = n < SF_MAX_INLINED ? n : SF_MAX_INLINED;
	for (size_t i = 0; i < n; i++) {
		if (!push_function(names, &functions[i], i + 1 == n))
			return false;
	}
	for (size_t i = names->firsts.items[index]; i < names->frames.n; i++) {
		const struct unnamed *frame = &names->frames.items[i];
		struct sf_raw_frame *raw = &loader->raw_frames.items[frame->frame];

		if (frame->module != names->module || frame->address != address)
			break;
		raw->first = first;
		raw->n = (uint32_t)n;
	}
	return true;
}

bool sf_late_names_note(struct sf_late_names *names, const char *text)
{
	struct sf_loader *loader = names->loader;
	struct sf_profile_note note = { .text = string_of(loader, text) };

	for (size_t i = 0; i < loader->extra_notes.n; i++) {
		if (loader->extra_notes.items[i].text == note.text)
			return true;
	}
	return note.text != UINT32_MAX && sf_vec_push(&loader->extra_notes, note);
}

static const char *text_of(const struct sf_loader *loader, uint32_t string)
{
	return string ? sf_intern_get(loader->strings, string, NULL) : "";
}

static bool name_module(struct sf_late_names *names, const struct sf_profile_namer *namer)
{
	const struct sf_loader *loader = names->loader;
	const struct sf_profile_module *module = &loader->modules.items[names->module - 1];
	SF_CLEANUP(free) char *path = strdup(text_of(loader, module->path));
	SF_CLEANUP(free) char *build_id = strdup(text_of(loader, module->build_id));

	return path && build_id && /* copies: strings move as others are added */
	       namer->name(names, path, build_id, names->addresses.items, names->addresses.n,
			   namer->arg);
}

bool sf_loader_name_frames(struct sf_loader *loader, const struct sf_profile_namer *namer,
			   struct sf_error *err)
{
	struct sf_late_names names = { .loader = loader };
	bool done = collect(&names);

	for (size_t next = 0; done && next < names.frames.n;)
		done = take_module(&names, next, &next) && name_module(&names, namer);
	sf_vec_deinit(&names.frames);
	sf_vec_deinit(&names.addresses);
	sf_vec_deinit(&names.firsts);
	return done || sf_fail_memory(err);
}
