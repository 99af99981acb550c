/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that are taken over from a thread's last stack make no difference: each stack gets the number that it gets when all
 * of its frames are looked up. The traces grow, shrink and change at random, in whatever makes two frames differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/recorded_thread.h"
#include "small_recording.h"

#define MAX_FRAMES 40

static struct sf_recording *recording;
static struct sf_stack_suffix suffix;
static struct sf_frame frames[MAX_FRAMES]; /* as they are walked, innermost first */
static uint32_t n_frames, n_looked_up;

static int set_up(void **state)
{
	srandom(1);
	small_folder_make(state);
	recording = small_start(small_path("a.sfr"));
	suffix = (struct sf_stack_suffix){ 0 };
	n_frames = 10;
	return 0;
}

static int tear_down(void **state)
{
	sf_stack_suffix_deinit(&suffix);
	small_finish(recording);
	return small_folder_remove(state);
}

static struct sf_frame make_frame(uint32_t from_root)
{
	static const uint8_t kinds[] = { SF_KIND_NATIVE, SF_KIND_INTERPRETED, SF_KIND_C2 };
	struct sf_frame frame = {
		.pc = 0x1000 + (uint64_t)random() % 3,
		.sp = 0x7000 - from_root * 16 - (uint64_t)random() % 2,
		.via = random() % 8 ? SF_VIA_RUNTIME : SF_VIA_GUESS,
		.kind = kinds[random() % 3],
		.bci = (int32_t)random() % 2,
	};

	if (sf_kind_is_managed(frame.kind)) {
		frame.token = 0x5000 + (uint64_t)random() % 2 * 8;
		frame.id = (uint32_t)random() % 2;
	} else {
		frame.image = (uint32_t)random() % 2;
	}
	frame.address = frame.pc - 0x800 * (uint64_t)(random() % 2); /* in a stream: a key */
	return frame;
}

/* As a thread does: some frames are left, some others entered; now and then another call is made somewhere outside. */
static void go_on(void)
{
	struct sf_frame next[MAX_FRAMES];
	uint32_t n_stay = n_frames - (uint32_t)random() % (n_frames < 6 ? n_frames + 1 : 6);
	uint32_t n = n_stay + (uint32_t)random() % 6;

	n = n < MAX_FRAMES ? n : MAX_FRAMES;
	for (uint32_t i = 0; i < n; i++)
		next[n - 1 - i] = i < n_stay ? frames[n_frames - 1 - i] : make_frame(i);
	if (n && random() % 4 == 0) {
		uint32_t from_root = (uint32_t)random() % n;

		next[n - 1 - from_root] = make_frame(from_root);
	}
	memcpy(frames, next, n * sizeof(*next));
	n_frames = n;
}

/* The names in the recording of places in managed code. */
static void find_places(struct sf_frame *of, uint32_t n)
{
	struct sf_error err;

	for (uint32_t i = 0; i < n; i++) {
		char text[80];
		struct sf_location name = { .function = text, .linkage = text, .file = "" };
		uint32_t number;

		if (!sf_kind_is_managed(of[i].kind))
			continue;
		snprintf(text, sizeof(text), "%x %x %x %d %x", (unsigned)of[i].pc, (unsigned)of[i].token,
			 of[i].id, of[i].bci, (unsigned)of[i].address);
		assert_true(sf_recording_place(recording, &name, 1, &number, &err));
		of[i].address = number;
	}
}

static uint32_t number_of(enum sf_end end, const char *wait)
{
	struct sf_frame copy[MAX_FRAMES];
	struct sf_trace trace = { copy, MAX_FRAMES, n_frames, end };
	struct sf_error err;
	uint32_t number;

	memcpy(copy, frames, sizeof(copy));
	find_places(copy, n_frames);
	assert_true(sf_recording_stack(recording, &trace, wait, 0, NULL, &number, &err));
	return number;
}

static uint32_t number_by_outer(enum sf_end end, const char *wait)
{
	struct sf_frame copy[MAX_FRAMES];
	struct sf_trace trace = { copy, MAX_FRAMES, n_frames, end };
	struct sf_error err;
	uint32_t number;

	memcpy(copy, frames, sizeof(copy));
	assert_true(sf_stack_suffix_match(&suffix, &trace));
	n_looked_up += n_frames - suffix.n_same;
	find_places(copy, n_frames - suffix.n_same);
	assert_true(sf_recording_stack(recording, &trace, wait, suffix.n_same, suffix.stacks,
					  &number, &err));
	return number;
}

static void test_the_same_numbers(void **state)
{
	uint32_t n_all = 0;

	(void)state;
	n_looked_up = 0;
	for (unsigned i = 0; i < 20000; i++) {
		enum sf_end end = random() % 10 ? SF_END_ROOT : random() % 2 ? SF_END_COPY : SF_END_DEPTH;
		const char *wait = random() % 5 ? NULL : "[futex]";

		go_on();
		n_all += n_frames;
		assert_int_equal(number_by_outer(end, wait), number_of(end, wait));
	}
	assert_true(n_all > 0 && n_looked_up < n_all / 2); /* it is of use, too */
}

static void test_empty_stacks(void **state)
{
	(void)state;
	number_by_outer(SF_END_ROOT, NULL);
	n_frames = 0;
	assert_int_equal(number_by_outer(SF_END_ROOT, NULL), number_of(SF_END_ROOT, NULL));
	assert_int_equal(number_by_outer(SF_END_EMPTY, "[futex]"), number_of(SF_END_EMPTY, "[futex]"));
	n_frames = 10;
	assert_int_equal(number_by_outer(SF_END_ROOT, NULL), number_of(SF_END_ROOT, NULL));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_the_same_numbers),
		TEST(test_empty_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
