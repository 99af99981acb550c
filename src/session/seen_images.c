/* SPDX-License-Identifier: Apache-2.0 */
#include "session/seen_images.h"

struct key {
	uint32_t program, image;
};

bool sf_seen_images_init(struct sf_seen_images *seen)
{
	*seen = (struct sf_seen_images){ .pids = sf_intern_create(), .keys = sf_intern_create() };
	return seen->pids && seen->keys;
}

void sf_seen_images_deinit(struct sf_seen_images *seen)
{
	sf_intern_destroy(seen->pids);
	sf_intern_destroy(seen->keys);
	sf_vec_deinit(&seen->programs);
	sf_vec_deinit(&seen->numbers);
}

bool sf_seen_images_forget(struct sf_seen_images *seen, int32_t pid)
{
	uint32_t place = sf_intern_add(seen->pids, &pid, sizeof(pid), NULL);

	if (!place || (place > seen->programs.n && !sf_vec_push(&seen->programs, 0)))
		return false;
	seen->programs.items[place - 1] = ++seen->n_programs;
	return true;
}

/* The number of the program that a process runs; 0: we were never told of it. */
static uint32_t program_of(const struct sf_seen_images *seen, int32_t pid)
{
	uint32_t place = sf_intern_find(seen->pids, &pid, sizeof(pid));

	return place && place <= seen->programs.n ? seen->programs.items[place - 1] : 0;
}

bool sf_seen_images_add(struct sf_seen_images *seen, int32_t pid, uint32_t image, uint32_t number)
{
	struct key key = { .program = program_of(seen, pid), .image = image };
	uint32_t place;

	if (!key.program) {
		if (!sf_seen_images_forget(seen, pid))
			return false;
		key.program = program_of(seen, pid);
	}
	place = sf_intern_add(seen->keys, &key, sizeof(key), NULL);
	if (!place || (place > seen->numbers.n && !sf_vec_push(&seen->numbers, 0)))
		return false;
	seen->numbers.items[place - 1] = number;
	return true;
}

uint32_t sf_seen_images_find(const struct sf_seen_images *seen, int32_t pid, uint32_t image)
{
	const struct key key = { .program = program_of(seen, pid), .image = image };
	uint32_t place = sf_intern_find(seen->keys, &key, sizeof(key));

	return place && place <= seen->numbers.n ? seen->numbers.items[place - 1] : 0;
}
