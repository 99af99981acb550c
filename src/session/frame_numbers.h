/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers in a recording of places in managed code. Finished stacks name such a place by a key of the process's own,
 * which is described some time after the first frame that has it, or never. Ordinary code, one thread at a time.
 */
#ifndef SF_SESSION_FRAME_NUMBERS_H
#define SF_SESSION_FRAME_NUMBERS_H

#include "base/intern.h"
#include "base/vec.h"
#include "recording/recording.h"

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
