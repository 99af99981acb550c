/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image numbers in finished stacks: each process counts its own, from 1, and anew after an exec. Here they become
 * those of the session's images. Ordinary code, one thread at a time.
 */
#ifndef SF_SESSION_IMAGE_NUMBERS_H
#define SF_SESSION_IMAGE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/vec.h"
#include "capture/sink.h"

struct sf_image_numbers {
	struct sf_intern *pids;       /* number of a pid = place in programs + 1 */
	SF_VEC(uint32_t) programs;    /* which program, of all that were seen, each pid runs */
	uint32_t n_programs;
	struct sf_intern *keys;       /* number of (program, image) = place in numbers + 1 */
	SF_VEC(uint32_t) numbers;     /* the session's */
	struct sf_intern *files;      /* the files that were taken in */
};

/* False when memory ran out; deinit in any case. */
bool sf_image_numbers_init(struct sf_image_numbers *seen);
void sf_image_numbers_deinit(struct sf_image_numbers *seen);

/* The process is new or runs another program: what its numbers meant is forgotten. */
bool sf_image_numbers_forget(struct sf_image_numbers *seen, int32_t pid);

/*
 * Image `image` of this process is `number` of the session. The same number again: the last holds.
 */
bool sf_image_numbers_add(struct sf_image_numbers *seen, int32_t pid, uint32_t image, uint32_t number);

/*
 * Whether one more file is taken in, or this one was before: a session takes 8,192 different ones. False when
 * memory ran out.
 */
bool sf_image_numbers_take(struct sf_image_numbers *seen, const struct sf_image_number *image,
			 bool *has_room_ret);

/* The number of the program that a process runs, of all that were seen; 0: it has none. */
uint32_t sf_image_numbers_program(const struct sf_image_numbers *seen, int32_t pid);

/* The session's number; 0 when it is not known. */
uint32_t sf_image_numbers_find(const struct sf_image_numbers *seen, int32_t pid, uint32_t image);

#endif
