/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of places in managed code become the recording's places: one for each key of each process, described before or after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "session/frame_numbers.h"
#include "small_recording.h"

#define KEY UINT64_C(0x1234500000007)

static struct sf_recording *recording;
static struct sf_frame_numbers seen;
static struct sf_error err;

static int set_up(void **state)
{
	small_folder_make(state);
	recording = small_start(small_path("places.sfr"));
	return sf_frame_numbers_init(&seen) ? 0 : -1;
}

static int tear_down(void **state)
{
	sf_frame_numbers_deinit(&seen);
	if (recording)
		small_finish(recording);
	return small_folder_remove(state);
}

/* The recording's number for the place that a process's frame has by this key. */
static uint64_t taken(int32_t pid, uint64_t key)
{
	struct sf_frame frame = { .kind = SF_KIND_MANAGED, .address = key };

	assert_true(sf_frame_numbers_take(&seen, recording, pid, &frame, 1, &err));
	return frame.address;
}

static void tell(int32_t pid, uint64_t key, const char *function)
{
	const struct sf_location name = { .function = function, .linkage = "", .file = "" };

	assert_true(sf_frame_numbers_describe(&seen, recording, pid, key, &name, 1, &err));
}

static void a_key_is_one_place(void **state)
{
	(void)state;
	assert_int_equal(taken(40, KEY), taken(40, KEY));
	assert_int_not_equal(taken(40, KEY), taken(40, KEY + 1));
	assert_int_not_equal(taken(40, KEY), taken(40, KEY ^ UINT64_C(1) << 63));
}

/* Two processes choose their keys by themselves: the same one means another place. */
static void a_key_is_its_process_s_own(void **state)
{
	uint64_t one, other;
	(void)state;

	tell(40, KEY, "one");
	tell(41, KEY, "other");
	one = taken(40, KEY);
	other = taken(41, KEY);
	assert_int_not_equal(one, other);
	tell(42, KEY, "one");
	assert_int_equal(taken(42, KEY), one); /* the same functions: the recording has them once */
	assert_int_not_equal(taken(43, KEY), one);
	assert_int_not_equal(taken(43, KEY), other);
	assert_int_not_equal(taken(44, KEY), taken(43, KEY)); /* not described yet, in either */
}

/* A frame may come before its description; what is said first holds. */
static void a_place_is_described_once(void **state)
{
	uint64_t promised, told;
	(void)state;

	promised = taken(40, KEY);
	assert_int_equal(taken(40, KEY), promised);
	tell(40, KEY, "one");
	told = taken(40, KEY);
	tell(40, KEY, "another");
	assert_int_equal(taken(40, KEY), told);
	tell(40, KEY + 1, "another");
	assert_int_not_equal(taken(40, KEY + 1), told);
	tell(40, KEY + 2, "one");
	assert_int_equal(taken(40, KEY + 2), told);
}

/* A frame that was recorded before its place was described has its functions in the end. */
static void a_promise_is_kept(void **state)
{
	struct sf_frame frame = { .kind = SF_KIND_MANAGED };
	const struct sf_trace trace = { .frames = &frame, .n_frames = 1, .capacity = 1, .end = SF_END_ROOT };
	const uint32_t thread = small_thread(recording, 41, "worker");
	uint32_t stack;
	(void)state;

	frame.address = taken(40, KEY);
	assert_true(sf_recording_stack(recording, &trace, NULL, 0, NULL, &stack, &err));
	small_sample(recording, 1, thread, stack, SF_STATE_RUNNING, 1, 1);
	tell(40, KEY, "described later");
	small_finish(recording);
	recording = NULL;
	assert_int_equal(small_query(small_path("places.sfr"),
				     "SELECT count(*) FROM frame_functions x JOIN functions f ON f.id = x.function "
				     "WHERE f.name = 'described later'"), 1);
}

/* Only managed frames have keys. */
static void other_frames_are_left_alone(void **state)
{
	struct sf_frame frames[3] = {
		{ .kind = SF_KIND_NATIVE, .address = KEY },
		{ .kind = SF_KIND_MANAGED, .address = KEY },
		{ .kind = SF_KIND_NATIVE, .address = KEY + 1 },
	};
	(void)state;

	assert_true(sf_frame_numbers_take(&seen, recording, 40, frames, 3, &err));
	assert_int_equal(frames[0].address, KEY);
	assert_int_equal(frames[1].address, taken(40, KEY));
	assert_int_equal(frames[2].address, KEY + 1);
	frames[1].address = KEY;
	assert_true(sf_frame_numbers_take(&seen, recording, 40, frames, 0, &err));
	assert_int_equal(frames[1].address, KEY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_is_one_place),
		TEST(a_key_is_its_process_s_own),
		TEST(a_place_is_described_once),
		TEST(a_promise_is_kept),
		TEST(other_frames_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
