/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a recording's size, which hold for every target and stream. They limit the memory for
 * writing the recording; reading it takes about as much. Normal recordings stay far below the limits.
 * Data beyond a limit is left out, and the recording gets one note that says so.
 */
#include <string.h>

#include "recording/writer.h"

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
