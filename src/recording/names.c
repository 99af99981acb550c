/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes names of native addresses to a recording. A place (module, address) may be behind several
 * frames, which differ in how they were found. So native frames are also kept sorted by place.
 */
#include <stdlib.h>
#include <string.h>

#include "recording/writer.h"

#define MAX_PENDING_NAMES 50000 /* rows; keeps a transaction, which stays in memory, small */

static int compare_places(const void *left, const void *right)
{
	const struct sf_place *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return 0;
}

static bool index_places(struct sf_recording *recording)
{
	uint32_t n = sf_intern_count(recording->frames);

	if (recording->placed_frames == n)
		return true;
	for (uint32_t number = recording->placed_frames + 1; number <= n; number++) {
		const struct sf_frame_key *key = sf_intern_get(recording->frames, number, NULL);
		struct sf_place place = { key->module, number, key->address };

		if ((key->kind == SF_KIND_NATIVE || key->kind == SF_KIND_KERNEL) &&
		    !sf_vec_push(&recording->places, place))
			return false;
		recording->placed_frames = number;
		if (recording->named.n < number && !sf_vec_push(&recording->named, SF_WITHOUT_NAMES))
			return false;
	}
	if (recording->places.n)
		qsort(recording->places.items, recording->places.n, sizeof(*recording->places.items),
		      compare_places);
	return true;
}

/* The first place that is not before this one. */
static size_t find_place(const struct sf_recording *recording, uint32_t module, uint64_t address)
{
	const struct sf_place wanted = { .module = module, .address = address };
	size_t low = 0, high = recording->places.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(&recording->places.items[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sf_recording_unnamed(struct sf_recording *recording, uint32_t module, uint64_t **ret,
			  size_t *n_ret, struct sf_error *err)
{
	SF_VEC(uint64_t) addresses = { 0 };

	if (!index_places(recording))
		return sf_fail_memory(err);
	for (size_t i = find_place(recording, module, 0); i < recording->places.n; i++) {
		const struct sf_place *place = &recording->places.items[i];

		if (place->module != module)
			break;
		if (recording->named.items[place->frame - 1] != SF_WITHOUT_NAMES)
			continue;
		recording->named.items[place->frame - 1] = SF_HANDED_OUT;
		if (addresses.n && addresses.items[addresses.n - 1] == place->address)
			continue;
		if (!sf_vec_push(&addresses, place->address)) {
			sf_vec_deinit(&addresses);
			return sf_fail_memory(err);
		}
	}
	*ret = addresses.items;
	*n_ret = addresses.n;
	return true;
}

bool sf_recording_names(struct sf_recording *recording, uint32_t module, uint64_t address,
			const struct sf_location *names, size_t n, struct sf_error *err)
{
	const uint32_t description = sf_recording_describe(recording, module, names, n);

	if (!description || !index_places(recording))
		return sf_fail_memory(err);
	for (size_t i = find_place(recording, module, address); i < recording->places.n; i++) {
		const struct sf_place *place = &recording->places.items[i];

		if (place->module != module || place->address != address)
			break;
		if (recording->named.items[place->frame - 1] == SF_WITH_NAMES)
			continue;
		if (!sf_recording_name_frame(recording, place->frame, description))
			return sf_fail_memory(err);
		recording->named.items[place->frame - 1] = SF_WITH_NAMES;
	}
	if (recording->frame_functions.n < MAX_PENDING_NAMES)
		return true;
	return sf_recording_save(recording, err);
}

size_t sf_recording_waiting_names(const struct sf_recording *recording)
{
	return recording->frame_functions.n;
}
