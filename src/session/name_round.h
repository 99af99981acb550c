/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One round of naming: takes the addresses of a recording that no round has taken before, looks up their names, and
 * writes them to the recording. The look-up needs nothing of the recording, so another thread can do it while the
 * recording goes on.
 */
#ifndef SF_SESSION_NAME_ROUND_H
#define SF_SESSION_NAME_ROUND_H

#include "base/intern.h"
#include "base/vec.h"
#include "recording/recording.h"
#include "session/kernel_names.h"
#include "symbols/lookup.h"
#include "target/images.h"

/* The sources of names, which the rounds of a recording share. */
struct sf_name_sources {
	struct sf_lookup lookup;
	struct sf_kernel_names kernel;
};

/* Of more inlined calls at an address the innermost have no names: the outermost is the function itself. How many have none: */
#define SF_MAX_INLINED 64u
static inline size_t sf_inlined_left_out(size_t n)
{
	return n > SF_MAX_INLINED ? n - SF_MAX_INLINED : 0;
}

struct sf_name_round;

/* The addresses of an image; for src/session/name_round.c. */
struct sf_round_image {
	struct sf_name_round *round;
	uint32_t module;
	bool is_kernel;
	struct sf_lookup_image lookup; /* the addresses are owned */
};

/* The functions at an address: a run in `locations`. */
struct sf_round_name {
	uint32_t module, n;
	uint64_t address;
	size_t first;
};

/* Zero it to begin. */
struct sf_name_round {
	SF_VEC(struct sf_round_image) images;
	SF_VEC(struct sf_round_name) names;
	SF_VEC(struct sf_location) locations;
	struct sf_intern *texts;       /* of the locations */
	size_t n_put;                  /* names that are in the recording */
	bool no_memory;
};

/* `is_last`: the recording is at its end. False: no memory. There may be none: n is 0 in `images`. */
bool sf_name_round_take(struct sf_name_round *round, struct sf_recording *recording, struct sf_images *images, bool is_last,
			struct sf_error *err);

/* Any thread, as long as no other uses the round or `sources`. */
void sf_name_round_look_up(struct sf_name_round *round, struct sf_name_sources *sources);

/* Writes names, at most until `max_rows` rows wait to be written to the file. *done_ret: all are written. */
bool sf_name_round_put(struct sf_name_round *round, struct sf_recording *recording, size_t max_rows, bool *done_ret,
		       struct sf_error *err);

/* Frees what it has; it can begin again. */
void sf_name_round_deinit(struct sf_name_round *round);

#endif
