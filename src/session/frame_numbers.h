/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers in the frames of finished stacks. Each process counts its images itself, from 1, and anew after an exec. It
 * names a place in managed code by a key of its own, which is described some time after the first frame that has it, or
 * never. Here these numbers become those of the session's images and of the recording's places. Ordinary code, one thread
 * at a time.
 */
#ifndef SF_SESSION_FRAME_NUMBERS_H
#define SF_SESSION_FRAME_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/vec.h"
#include "capture/sink.h"
#include "recording/recording.h"

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

struct sf_frame_number {
	uint32_t number;              /* the recording's */
	bool is_described;            /* else it is pending */
};

/* The limits of a session. All managed frames beyond them are one place, SF_MANAGED_LEFT_OUT. */
#define SF_SEEN_PLACES 131072
#define SF_SEEN_PLACE_FUNCTIONS 524288

struct sf_frame_numbers {
	struct sf_intern *keys;       /* number of (pid, key) = place in places + 1 */
	SF_VEC(struct sf_frame_number) places;
	size_t n_functions;           /* of all descriptions */
	uint32_t left_out;            /* the recording's place for what is beyond; 0: nothing is */
};

/* False when memory ran out; deinit in any case. */
bool sf_frame_numbers_init(struct sf_frame_numbers *seen);
void sf_frame_numbers_deinit(struct sf_frame_numbers *seen);

/* The functions at the place that process `pid` calls `key`. Of the same key the first description holds. */
bool sf_frame_numbers_describe(struct sf_frame_numbers *seen, struct sf_recording *recording, int32_t pid,
			 uint64_t key, const struct sf_location *names, size_t n,
			 struct sf_error *err);

/* The addresses of managed ones among these frames, which are keys, become the recording's numbers. */
bool sf_frame_numbers_take(struct sf_frame_numbers *seen, struct sf_recording *recording, int32_t pid,
			 struct sf_frame *frames, uint32_t n_frames, struct sf_error *err);

#endif
