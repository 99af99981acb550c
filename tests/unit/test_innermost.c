/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Innermost functions that a recording leaves out: those with such names, and native code behind them, whenever their
 * names come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "recording/recording.h"
#include "small_recording.h"

#define NATIVE 0                 /* in place of a place */

static struct sf_recording *recording;
static struct sf_error err;
static uint32_t thread, way, program, pending;

static uint32_t place_of(const char *function)
{
	const struct sf_location name = { .function = function, .linkage = "", .file = "" };
	uint32_t place;

	assert_true(sf_recording_place(recording, &name, 1, &place, &err));
	return place;
}

static void tell(uint32_t place, const char *function)
{
	const struct sf_location name = { .function = function, .linkage = "", .file = "" };
	uint32_t told;

	assert_true(sf_recording_describe_pending(recording, place, &name, 1, &told, &err));
}

static int set_up(void **state)
{
	small_folder_make(state);
	recording = small_start(small_path("a.sfr"));
	thread = small_thread(recording, 101, "one");
	way = place_of("Runtime.Throw.Dispatch(int)");
	program = place_of("Program.Throws()");
	assert_true(sf_recording_pending(recording, &pending, &err));
	return 0;
}

static int tear_down(void **state)
{
	if (recording)
		small_finish(recording);
	return small_folder_remove(state);
}

/* A sample of 1, 2, 3 or 4 places, innermost first; its time tells samples apart. */
static void sample(unsigned at_ms, const uint32_t *places, uint32_t n)
{
	struct sf_frame frames[4];
	const struct sf_trace trace = { .frames = frames, .capacity = 4, .n_frames = n, .end = SF_END_ROOT };
	uint32_t stack;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = places[i] == NATIVE ? (struct sf_frame){ .kind = SF_KIND_NATIVE, .image = 1, .address = 0x1012 }
						: (struct sf_frame){ .kind = SF_KIND_MANAGED, .address = places[i] };
	assert_true(sf_recording_stack(recording, &trace, NULL, 0, NULL, &stack, &err));
	small_sample(recording, at_ms, thread, stack, SF_STATE_RUNNING, 0, 0);
}
#define SAMPLE(at_ms, ...) \
	sample((at_ms), (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* The frames of the sample's stack. */
static int64_t depth_of(unsigned at_ms)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM stack_frames WHERE stack = (SELECT stack FROM samples WHERE time_ns = %llu)",
		 (unsigned long long)at_ms * MS);
	return small_query(small_path("a.sfr"), sql);
}

static int64_t n_written(void)
{
	return small_query(small_path("a.sfr"), "SELECT count(*) FROM samples");
}

static void finish(void)
{
	small_finish(recording);
	recording = NULL;
}

static void they_are_left_out_up_to_the_next_managed_function(void **state)
{
	(void)state;
	sf_recording_leave_out(recording, "Runtime.Throw.");
	SAMPLE(1, way, NATIVE, program);
	SAMPLE(2, way, way, program, NATIVE);
	SAMPLE(3, program, way, program);
	SAMPLE(4, way, NATIVE);         /* no function of the program is there */
	SAMPLE(5, NATIVE, program);     /* and none of the runtime's way */
	finish();
	assert_int_equal(depth_of(1), 1);
	assert_int_equal(depth_of(2), 2);
	assert_int_equal(depth_of(3), 3);
	assert_int_equal(depth_of(4), 2);
	assert_int_equal(depth_of(5), 2);
}

static void nothing_is_left_out_unless_told(void **state)
{
	(void)state;
	SAMPLE(1, way, NATIVE, program);
	finish();
	assert_int_equal(depth_of(1), 3);
}

/* A sample waits for the name of its innermost function. The burst that comes before it writes the others. */
static void a_sample_waits_for_its_names(void **state)
{
	(void)state;
	sf_recording_leave_out(recording, "Runtime.Throw.");
	SAMPLE(1, pending, NATIVE, program);
	SAMPLE(2, program);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 2000 * (uint64_t)MS, &err));
	assert_int_equal(n_written(), 1);
	tell(pending, "Runtime.Throw.Late()");
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 4000 * (uint64_t)MS, &err));
	assert_int_equal(n_written(), 2);
	assert_int_equal(depth_of(1), 1);
	finish();
	assert_int_equal(n_written(), 2);
}

static void what_is_never_told_is_written_at_the_end(void **state)
{
	(void)state;
	sf_recording_leave_out(recording, "Runtime.Throw.");
	SAMPLE(1, pending, NATIVE, program);
	assert_true(sf_recording_tick(recording, SMALL_START_NS + 2000 * (uint64_t)MS, &err));
	assert_int_equal(n_written(), 0);
	finish();
	assert_int_equal(depth_of(1), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_are_left_out_up_to_the_next_managed_function, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_left_out_unless_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_sample_waits_for_its_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_never_told_is_written_at_the_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
