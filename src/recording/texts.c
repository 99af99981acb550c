/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a recording and its functions, which are made of texts: each is kept once, under a number. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "recording/writer.h"

#define TEXT_COST 64                /* bytes, about, of keeping a text */

uint32_t sf_recording_text(struct sf_recording *recording, const char *text)
{
	size_t size = text ? strnlen(text, SF_MAX_TEXT) : 0;
	SF_CLEANUP(free) char *copy = NULL;
	uint32_t number;
	bool is_new;

	if (size == 0)
		return sf_intern_string(recording->strings, "");
	copy = strndup(text, size);
	if (!copy)
		return 0;
	if (!sf_is_text(copy))
		sf_sanitize(copy);
	size = strlen(copy);
	if (!sf_intern_find(recording->strings, copy, size) &&
	    !sf_recording_has_room(recording, SF_LIMIT_TEXT, recording->text_size))
		return sf_intern_string(recording->strings, "[name left out]");
	number = sf_intern_add(recording->strings, copy, size, &is_new);
	if (is_new)
		recording->text_size += size + TEXT_COST;
	return number;
}

const char *sf_recording_string(const struct sf_recording *recording, uint32_t number)
{
	return sf_intern_get(recording->strings, number, NULL);
}

uint32_t sf_recording_function(struct sf_recording *recording, uint32_t module,
			       const struct sf_location *name)
{
	struct sf_function_key key = {
		.name = sf_recording_text(recording, name->function),
		.linkage = sf_recording_text(recording, name->linkage),
		.file = sf_recording_text(recording, name->file),
		.module = module,
	};

	if (!key.name || !key.linkage || !key.file)
		return 0;
	return sf_intern_add(recording->functions, &key, sizeof(key), NULL);
}
