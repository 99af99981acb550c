/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a process's own image numbers to those of the session. */
#include "session/image_numbers.h"

#include <string.h>

#define MAX_FILES 8192

struct key {
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
	struct key key = { .program = sf_image_numbers_program(seen, pid), .image = image };
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
	const struct key key = { .program = sf_image_numbers_program(seen, pid), .image = image };
	uint32_t place = sf_intern_find(seen->keys, &key, sizeof(key));

	return place && place <= seen->numbers.n ? seen->numbers.items[place - 1] : 0;
}
