/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the tables of a recording share while they are loaded: each text and each function is kept once, and
 * modules are found by their ids.
 */
#include "recording/profile/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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
	size_t low = 0, high = loader->module_ids.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loader->module_ids.items[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < loader->module_ids.n && loader->module_ids.items[low] == id ? (uint32_t)low + 1 : 0;
}
