/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the texts of locations, each once, and demangles linkage names. */
#include "symbols/location_names.h"

#include <inttypes.h>
#include <stdio.h>
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

bool sf_location_by_elf(struct sf_location_names *names, const char *name, struct sf_location *ret)
{
	char plain[1024];
	const char *at = strchr(name, '@');

	if (!at || at == name || (size_t)(at - name) >= sizeof(plain))
		return sf_location_by_linkage(names, name, ret);
	memcpy(plain, name, (size_t)(at - name));
	plain[at - name] = 0;
	return sf_location_by_linkage(names, plain, ret);
}

static const char *add_joined(struct sf_location_names *names, const char *text, const char *end)
{
	SF_CLEANUP(free) char *joined = NULL;

	if (asprintf(&joined, "%s%s", text, end) < 0) {
		joined = NULL;
		return NULL;
	}
	return sf_location_names_add(names, joined);
}

bool sf_location_by_plt(struct sf_location_names *names, const char *name, struct sf_location *ret)
{
	if (!sf_location_by_elf(names, name, ret))
		return false;
	ret->function = add_joined(names, ret->function, "@plt");
	ret->linkage = add_joined(names, ret->linkage, "@plt");
	return ret->function && ret->linkage;
}

bool sf_location_by_start(struct sf_location_names *names, uint64_t start, struct sf_location *ret)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64 "%s", start, *names->base ? " in " : "");
	ret->function = ret->linkage = add_joined(names, text, names->base);
	return ret->function != NULL;
}
