/* SPDX-License-Identifier: Apache-2.0 */
/* The set of managed places: each is queued once, whoever meets it; what finds no room is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/output/frame_keys.h"

#define KEYS 4096
#define RING 65536
#define N_THREADS 4
#define N_PLACES 500

static struct sf_frame_keys places;

static int make(uint32_t n_keys, uint64_t ring)
{
	memset(&places, 0, sizeof(places));
	places.seed = 1234;
	places.n_keys = n_keys;
	places.keys = calloc(n_keys, sizeof(uint64_t));
	places.queue = aligned_alloc(4096, (sizeof(struct sf_outbox_header) + ring + 4095) &
						   ~(uint64_t)4095);
	if (!places.keys || !places.queue)
		return -1;
	memset(places.queue, 0, sizeof(struct sf_outbox_header) + ring);
	places.queue = sf_outbox_init(places.queue, ring, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free((void *)places.keys);
	free(places.queue);
	return 0;
}

static int fresh(void **state)
{
	(void)state;
	return make(KEYS, RING);
}

static bool take(struct sf_frame_key_wanted *ret)
{
	return sf_outbox_get(places.queue, RING, ret, sizeof(*ret)) > 0;
}

static struct sf_frame compiled(uint64_t pc)
{
	return (struct sf_frame){ .pc = pc, .kind = SF_KIND_C2, .token = 0x7000, .id = 3, .bci = -1 };
}

static uint64_t meet(const struct sf_frame *frame)
{
	const uint64_t key = sf_frame_keys_key(&places, frame);

	sf_frame_keys_queue(&places, frame, key);
	return key;
}

static void a_place_is_queued_once(void **state)
{
	struct sf_frame frame = compiled(0x7010);
	struct sf_frame_key_wanted wanted;
	uint64_t key = meet(&frame);

	(void)state;
	assert_int_not_equal(key, 0);
	assert_int_equal(meet(&frame), key);
	assert_int_equal(sf_frame_key_number(places.seed, &frame), key);
	assert_true(take(&wanted));
	assert_int_equal(wanted.key, key);
	assert_memory_equal(&wanted.frame, &frame, sizeof(frame));
	assert_false(take(&wanted));
}

/* The differences that make another place, and those that do not. */
static void keys_tell_places_apart(void **state)
{
	const struct sf_frame frame = compiled(0x7010);
	const uint64_t key = sf_frame_key_number(1, &frame);
	struct sf_frame other;

	(void)state;
#define DIFFERS(change) (other = frame, other.change, assert_int_not_equal(sf_frame_key_number(1, &other), key))
	DIFFERS(pc = 0x7011);
	DIFFERS(id = 4);
	DIFFERS(token = 0x7008);
	DIFFERS(kind = SF_KIND_C1);
	DIFFERS(flags = SF_FRAME_EXACT);
#undef DIFFERS
	assert_int_not_equal(sf_frame_key_number(2, &frame), key);
	other = frame;
	other.sp = 99;
	other.via = SF_VIA_GUESS;
	assert_int_equal(sf_frame_key_number(1, &other), key);
	/* In the interpreter the code is everybody's. */
	other.kind = SF_KIND_INTERPRETED;
	other.bci = 7;
	const uint64_t bytecode = sf_frame_key_number(1, &other);

	other.pc++;
	assert_int_equal(sf_frame_key_number(1, &other), bytecode);
	other.bci++;
	assert_int_not_equal(sf_frame_key_number(1, &other), bytecode);
}

static void a_full_queue_is_asked_again(void **state)
{
	struct sf_frame_key_wanted wanted;
	uint64_t n = 0, again = 0;
	struct sf_frame frame;

	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		frame = compiled(i);
		meet(&frame);
	}
	while (take(&wanted))
		n++;
	assert_in_range(n, 100, 1999);
	for (uint64_t i = 0; i < 2000; i++) {
		frame = compiled(i);
		meet(&frame);
		while (take(&wanted))
			again++;
	}
	assert_int_equal(n + again, 2000);
	assert_int_equal(atomic_load(&places.n_not_queued), 0);
}

static void a_full_set_is_counted(void **state)
{
	struct sf_frame_key_wanted wanted;
	uint64_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < 3 * KEYS; i++) {
		struct sf_frame frame = compiled(i);

		meet(&frame);
		n += take(&wanted);
	}
	assert_int_equal(n + atomic_load(&places.n_not_queued), 3 * KEYS);
	assert_in_range(n, KEYS / 2, KEYS);
}

static void *meet_all(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < N_PLACES; i++) {
		struct sf_frame frame = compiled(i);

		meet(&frame);
	}
	return NULL;
}

/* At the same time a place may be queued by each, never by none. */
static void many_threads_meet_the_same(void **state)
{
	uint8_t seen[N_PLACES] = { 0 };
	struct sf_frame_key_wanted wanted;
	pthread_t threads[N_THREADS];

	(void)state;
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, meet_all, NULL), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	while (take(&wanted))
		seen[wanted.frame.pc]++;
	meet_all(NULL);
	while (take(&wanted))
		seen[wanted.frame.pc]++;
	for (int i = 0; i < N_PLACES; i++)
		assert_in_range(seen[i], 1, N_THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_place_is_queued_once, fresh, teardown),
		cmocka_unit_test_setup_teardown(keys_tell_places_apart, fresh, teardown),
		cmocka_unit_test_setup_teardown(a_full_queue_is_asked_again, fresh, teardown),
		cmocka_unit_test_setup_teardown(a_full_set_is_counted, fresh, teardown),
		cmocka_unit_test_setup_teardown(many_threads_meet_the_same, fresh, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
