/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a process's own keys of managed frames to the numbers in the recording. */
#include "session/frame_numbers.h"

struct key {                          /* no padding */
	uint64_t key;
	int32_t pid;
	uint32_t zero;
};

bool sf_frame_numbers_init(struct sf_frame_numbers *seen)
{
	*seen = (struct sf_frame_numbers){ .keys = sf_intern_create() };
	return seen->keys != NULL;
}

void sf_frame_numbers_deinit(struct sf_frame_numbers *seen)
{
	sf_intern_destroy(seen->keys);
	sf_vec_deinit(&seen->places);
	seen->keys = NULL;
}

static const struct sf_location left_out = {
	.function = "[managed code that was left out]", .linkage = "", .file = "",
};

static bool is_left_out(const struct sf_frame_numbers *seen, int32_t pid, uint64_t key)
{
	const struct key wanted = { key, pid, 0 };

	return sf_intern_count(seen->keys) >= SF_SEEN_PLACES &&
	       !sf_intern_find(seen->keys, &wanted, sizeof(wanted));
}

/* Makes the place of all that is left out, once. */
static bool leave_out(struct sf_frame_numbers *seen, struct sf_recording *recording,
		      struct sf_error *err)
{
	return seen->left_out ||
	       (sf_recording_note(recording, 0, "Managed code at more places than are kept "
				  "(131,072, or 524,288 functions at them): later ones are shown as "
				  "[managed code that was left out]", err) &&
		sf_recording_place(recording, &left_out, 1, &seen->left_out, err));
}

/* Finds or adds the entry of a key. A new entry has the number 0: no description yet. NULL: no memory. */
static struct sf_frame_number *find(struct sf_frame_numbers *seen, int32_t pid, uint64_t key)
{
	const struct key wanted = { key, pid, 0 };
	uint32_t place = sf_intern_add(seen->keys, &wanted, sizeof(wanted), NULL);

	if (!place || (place > seen->places.n &&
		       !sf_vec_push(&seen->places, (struct sf_frame_number){ 0 })))
		return NULL;
	return &seen->places.items[place - 1];
}

bool sf_frame_numbers_describe(struct sf_frame_numbers *seen, struct sf_recording *recording, int32_t pid,
			 uint64_t key, const struct sf_location *names, size_t n,
			 struct sf_error *err)
{
	struct sf_frame_number *place;

	if (is_left_out(seen, pid, key))
		return leave_out(seen, recording, err);
	place = find(seen, pid, key);
	if (!place)
		return sf_fail_memory(err);
	if (place->is_described)
		return true;
	place->is_described = true;
	if (seen->n_functions + n > SF_SEEN_PLACE_FUNCTIONS) {
		if (!leave_out(seen, recording, err))
			return false;
		names = &left_out;
		n = 1;
	} else {
		seen->n_functions += n;
	}
	if (place->number)
		return sf_recording_describe_pending(recording, place->number, names, n,
						 &place->number, err);
	return sf_recording_place(recording, names, n, &place->number, err);
}

bool sf_frame_numbers_take(struct sf_frame_numbers *seen, struct sf_recording *recording, int32_t pid,
			 struct sf_frame *frames, uint32_t n_frames, struct sf_error *err)
{
	for (uint32_t i = 0; i < n_frames; i++) {
		struct sf_frame *frame = &frames[i];
		struct sf_frame_number *place;

		if (!sf_kind_is_managed(frame->kind))
			continue;
		if (is_left_out(seen, pid, frame->address)) {
			if (!leave_out(seen, recording, err))
				return false;
			frame->address = seen->left_out;
			continue;
		}
		place = find(seen, pid, frame->address);
		if (!place)
			return sf_fail_memory(err);
		if (!place->number && !sf_recording_pending(recording, &place->number, err))
			return false;
		frame->address = place->number;
	}
	return true;
}
