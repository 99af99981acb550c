/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that a recording keeps once, each under a number, and the limits on it. Here are its texts, and its functions, which are
 * made of texts.
 *
 * The limits hold for every target and stream. They limit the memory for writing the recording; reading it takes about as
 * much. Normal recordings stay far below the limits. Data beyond a limit is left out, and the recording gets one note that
 * says so.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "recording/writer.h"

#define TEXT_COST 64                /* bytes, about, of keeping a text */

/* --- limits --- */

static const struct {
	uint64_t most;
	const char *note;
} limits[SF_N_RECORDING_LIMITS] = {
	[SF_LIMIT_FRAMES] = { 1u << 19, "more than 524,288 different addresses were sampled: stacks with "
			      "later ones are not shown" },
	[SF_LIMIT_STACKS] = { 1500000, "more than 1,500,000 different stacks and parts of stacks were "
			      "sampled: later ones are not shown" },
	[SF_LIMIT_TEXT] = { 64u << 20, "names have more than 64 MB: later ones are shown as "
			    "[name left out]" },
	[SF_LIMIT_LOSSES] = { 1u << 19, "more than 524,288 threads and causes have losses: later ones are of no known thread" },
};

bool sf_recording_is_below(enum sf_recording_limit limit, uint64_t used)
{
	return used < limits[limit].most;
}

static void tell(struct sf_recording *recording, enum sf_recording_limit limit)
{
	struct sf_note_key note = { .pid = 0 };

	if (recording->limits_noted & 1u << limit)
		return;
	recording->limits_noted |= 1u << limit;
	note.text = sf_intern_string(recording->strings, limits[limit].note);
	if (note.text)
		sf_intern_add(recording->notes, &note, sizeof(note), NULL);
}

bool sf_recording_has_room(struct sf_recording *recording, enum sf_recording_limit limit,
			   uint64_t used)
{
	if (sf_recording_is_below(limit, used))
		return true;
	tell(recording, limit);
	return false;
}

/* --- texts and functions --- */

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
