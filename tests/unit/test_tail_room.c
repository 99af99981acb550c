/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of tails: as much as walks lack, within bounds, and all of it is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "session/recorded_thread.h"

static struct sf_tail tail_that_wants(uint32_t n, uint64_t size)
{
	return (struct sf_tail){ .n_wanted = n, .size_wanted = size };
}

static void what_a_walk_lacked_is_there(void **state)
{
	struct sf_tail_room room = { 0 };
	struct sf_tail tail = tail_that_wants(20, 3000);
	const struct sf_frame *frames;
	(void)state;

	sf_tail_room_fit(&room, &tail);
	assert_in_range(tail.capacity, 20, 40);
	assert_in_range(tail.size, 3000, 6000);
	memset(tail.frames, 0, tail.capacity * sizeof(*tail.frames));
	memset(tail.regs, 0, tail.capacity * sizeof(*tail.regs));
	memset(tail.bytes, 0, tail.size);
	frames = tail.frames;
	tail.n = 7;
	tail.n_wanted = tail.capacity;
	sf_tail_room_fit(&room, &tail);
	assert_ptr_equal(tail.frames, frames);
	assert_int_equal(tail.n, 7);
	sf_tail_room_free(&room, &tail);
	assert_int_equal(room.used, 0);
	assert_null(tail.frames);
}

static void one_tail_is_bounded(void **state)
{
	struct sf_tail_room room = { 0 };
	struct sf_tail tail = tail_that_wants(UINT32_MAX, UINT64_MAX);
	(void)state;

	sf_tail_room_fit(&room, &tail);
	assert_in_range(tail.capacity, 1, 1024);
	assert_in_range(tail.size, 1, 65536);
	sf_tail_room_free(&room, &tail);
}

/* Those that come later have none. They have one when others have ended. */
static void all_tails_are_bounded(void **state)
{
	enum { N = 200 };
	struct sf_tail_room room = { 0 };
	struct sf_tail tails[N];
	unsigned n_with = 0;
	(void)state;

	for (unsigned i = 0; i < N; i++) {
		tails[i] = tail_that_wants(UINT32_MAX, UINT64_MAX);
		sf_tail_room_fit(&room, &tails[i]);
		n_with += tails[i].frames != NULL;
	}
	assert_in_range(n_with, 50, N - 1);
	assert_in_range(room.used, 1, 16 << 20);
	sf_tail_room_free(&room, &tails[0]);
	sf_tail_room_fit(&room, &tails[N - 1]);
	assert_non_null(tails[N - 1].frames);
	for (unsigned i = 0; i < N; i++)
		sf_tail_room_free(&room, &tails[i]);
	assert_int_equal(room.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_walk_lacked_is_there),
		cmocka_unit_test(one_tail_is_bounded),
		cmocka_unit_test(all_tails_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
