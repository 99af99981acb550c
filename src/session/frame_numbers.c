/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a process's own numbers of images and keys of managed frames to the numbers of the session and the recording. */
#include "session/frame_numbers.h"

#include <string.h>

#define MAX_FILES 8192

struct image_key {
	uint32_t program, image;
};

bool sf_image_numbers_init(struct sf_image_numbers *seen)
{
	*seen = (struct sf_image_numbers){
		.pids = sf_intern_create(),
		.keys = sf_intern_create(),
		.files = sf_intern_create(),
	};
	return seen->pids && seen->keys && seen->files;
}

void sf_image_numbers_deinit(struct sf_image_numbers *seen)
{
	sf_intern_destroy(seen->pids);
	sf_intern_destroy(seen->keys);
	sf_intern_destroy(seen->files);
	sf_vec_deinit(&seen->programs);
	sf_vec_deinit(&seen->numbers);
}

bool sf_image_numbers_forget(struct sf_image_numbers *seen, int32_t pid)
{
	uint32_t place = sf_intern_add(seen->pids, &pid, sizeof(pid), NULL);

	if (!place || (place > seen->programs.n && !sf_vec_push(&seen->programs, 0)))
		return false;
	seen->programs.items[place - 1] = ++seen->n_programs;
	return true;
}

uint32_t sf_image_numbers_program(const struct sf_image_numbers *seen, int32_t pid)
{
	uint32_t place = sf_intern_find(seen->pids, &pid, sizeof(pid));

	return place && place <= seen->programs.n ? seen->programs.items[place - 1] : 0;
}

struct file {                         /* no padding; then its path, as far as it fits */
	uint64_t inode, device;
	uint8_t build_id[32];
	char path[4096];
};

bool sf_image_numbers_take(struct sf_image_numbers *seen, const struct sf_image_number *image,
			 bool *has_room_ret)
{
	struct file file = { .inode = image->inode, .device = image->device };
	size_t size = strnlen(image->path, sizeof(file.path));

	memcpy(file.path, image->path, size);
	size += sizeof(file) - sizeof(file.path);
	if (image->build_id_size && image->build_id_size <= sizeof(file.build_id))
		memcpy(file.build_id, image->build_id, image->build_id_size);
	*has_room_ret = sf_intern_count(seen->files) < MAX_FILES ||
			sf_intern_find(seen->files, &file, size);
	return !*has_room_ret || sf_intern_add(seen->files, &file, size, NULL);
}

bool sf_image_numbers_add(struct sf_image_numbers *seen, int32_t pid, uint32_t image, uint32_t number)
{
	struct image_key key = { .program = sf_image_numbers_program(seen, pid), .image = image };
	uint32_t place;

	if (!key.program) {
		if (!sf_image_numbers_forget(seen, pid))
			return false;
		key.program = sf_image_numbers_program(seen, pid);
	}
	place = sf_intern_add(seen->keys, &key, sizeof(key), NULL);
	if (!place || (place > seen->numbers.n && !sf_vec_push(&seen->numbers, 0)))
		return false;
	seen->numbers.items[place - 1] = number;
	return true;
}

uint32_t sf_image_numbers_find(const struct sf_image_numbers *seen, int32_t pid, uint32_t image)
{
	const struct image_key key = { .program = sf_image_numbers_program(seen, pid), .image = image };
	uint32_t place = sf_intern_find(seen->keys, &key, sizeof(key));

	return place && place <= seen->numbers.n ? seen->numbers.items[place - 1] : 0;
}

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
