/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling managed functions apart by how they were run: interpreted, compiled by which compiler,
 * inlined.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/profile/profile.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

/* A function as one kind of frame. No padding. */
struct split_key {
	uint32_t function, kind, inlined;
};

struct splitting {
	struct sf_profile *profile;
	struct sf_intern *keys;      /* number - 1 = place of the new function behind the old
				      * ones */
	SF_VEC(char) text;           /* of the new strings */
};

static const char *word_of(const struct split_key *key)
{
	return key->inlined ? "inlined" : sf_kind_word(key->kind);
}

static bool add_text(struct splitting *splitting, const struct split_key *key)
{
	const struct sf_profile *profile = splitting->profile;
	const char *name = sf_profile_string(profile, profile->functions[key->function].name);
	size_t size = strlen(name) + strlen(word_of(key)) + sizeof(" []");

	if (!sf_vec_reserve(&splitting->text, size))
		return false;
	snprintf(splitting->text.items + splitting->text.n, size, "%s [%s]", name, word_of(key));
	splitting->text.n += size;
	return true;
}

/* Gives each managed frame the function of its kind. */
static bool split_frames(struct splitting *splitting)
{
	struct sf_profile *profile = splitting->profile;

	for (uint32_t i = 1; i < profile->n_frames; i++) {
		struct sf_profile_frame *frame = &profile->frames[i];
		struct split_key key = { frame->function, frame->kind, frame->inlined };
		uint32_t number;
		bool is_new;

		if (profile->functions[frame->function].kind != SF_KIND_MANAGED)
			continue;
		number = sf_intern_add(splitting->keys, &key, sizeof(key), &is_new);
		if (!number || (is_new && !add_text(splitting, &key)))
			return false;
		frame->function = profile->n_functions + number - 1;
	}
	return true;
}

static bool grow(struct sf_profile *profile, uint32_t n)
{
	struct sf_profile_function *functions = realloc(
		profile->functions, (profile->n_functions + (size_t)n) * sizeof(*functions));
	char **strings;

	if (!functions)
		return false;
	profile->functions = functions;
	strings = realloc(profile->strings, (profile->n_strings + (size_t)n) * sizeof(*strings));
	if (!strings)
		return false;
	profile->strings = strings;
	return true;
}

static bool add_functions(struct splitting *splitting)
{
	struct sf_profile *profile = splitting->profile;
	uint32_t n = sf_intern_count(splitting->keys);
	char *text = splitting->text.items;

	if (!grow(profile, n))
		return false;
	for (uint32_t i = 0; i < n; i++, text += strlen(text) + 1) {
		const struct split_key *key = sf_intern_get(splitting->keys, i + 1, NULL);
		struct sf_profile_function function = profile->functions[key->function];

		function.name = profile->n_strings;
		function.kind = (uint8_t)key->kind;
		profile->functions[profile->n_functions++] = function;
		profile->strings[profile->n_strings++] = text;
	}
	free(profile->more_strings);
	profile->more_strings = sf_steal(&splitting->text.items);
	return true;
}

bool sf_profile_split_kinds(struct sf_profile *profile, struct sf_error *err)
{
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *keys = sf_intern_create();
	struct splitting splitting = { .profile = profile, .keys = keys };
	bool fine = keys && split_frames(&splitting) &&
		    (sf_intern_count(keys) == 0 || add_functions(&splitting));

	sf_vec_deinit(&splitting.text);
	return fine || sf_fail_memory(err);
}
