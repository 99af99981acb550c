/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the texts of locations, each once, and demangles linkage names. */
#include "symbols/location_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A name longer than this is cut: hostile tables have names of their whole size. */
#define MAX_NAME ((size_t)32 << 10)

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

bool sf_location_names_init(struct sf_location_names *names, const char *path)
{
	*names = (struct sf_location_names){ .strings = sf_intern_create() };
	if (names->strings)
		names->base = sf_location_names_add(names, base_of(path));
	return names->base != NULL;
}

void sf_location_names_deinit(struct sf_location_names *names)
{
	sf_vec_deinit(&names->readable);
	sf_intern_destroy(names->strings);
	names->strings = NULL;
}

const char *sf_location_names_add(struct sf_location_names *names, const char *text)
{
	uint32_t number = sf_intern_add(names->strings, text, strnlen(text, MAX_NAME), NULL);

	return number ? sf_intern_get(names->strings, number, NULL) : NULL;
}

/* The place for the readable form of a linkage name; NULL when memory ran out. */
static const char **readable_of(struct sf_location_names *names, uint32_t number)
{
	while (number && names->readable.n <= number) {
		if (!sf_vec_push(&names->readable, NULL))
			return NULL;
	}
	return number ? &names->readable.items[number] : NULL;
}

bool sf_location_by_linkage(struct sf_location_names *names, const char *linkage,
			    struct sf_location *ret)
{
	uint32_t number = sf_intern_add(names->strings, linkage, strnlen(linkage, MAX_NAME),
					NULL);
	const char **readable = readable_of(names, number);

	if (!readable)
		return false;
	ret->linkage = sf_intern_get(names->strings, number, NULL);
	if (!*readable) {
		SF_CLEANUP(free) char *text = sf_demangle(ret->linkage);

		*readable = text ? sf_location_names_add(names, text) : NULL;
	}
	ret->function = *readable;
	return ret->function != NULL;
}
