/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that a walk of the still `r` must find. Include cmocka.h first, and define `r`. */
#ifndef SF_TESTS_RECORDED_FRAMES_H
#define SF_TESTS_RECORDED_FRAMES_H

#include "recorded.h"

struct expected {
	uint64_t pc, sp;
	uint8_t via, flags;
};

/* The frames as printed by a debugger, and how it ended. */
#define assert_frames(end, ...)                                                                    \
	check_frames(&r, (const struct expected[]){ __VA_ARGS__ },                                 \
		     sizeof((struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected), (end))

static inline void check_frames(struct recorded *recorded, const struct expected *expected, unsigned n, enum sf_end end)
{
	assert_int_equal(recorded_walk(recorded), end);
	assert_int_equal(recorded->trace.end, end);
	assert_int_equal(recorded->trace.n_frames, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(recorded->frames[i].pc, expected[i].pc);
		assert_int_equal(recorded->frames[i].sp, expected[i].sp);
		assert_int_equal(recorded->frames[i].via, expected[i].via);
		assert_int_equal(recorded->frames[i].flags, expected[i].flags);
	}
}

#define LEAF SF_VIA_LEAF, SF_FRAME_EXACT
#define ROWS SF_VIA_ROWS, 0
#define CHAIN SF_VIA_FRAME_POINTER, 0
#define GUESS SF_VIA_GUESS, 0

#endif
