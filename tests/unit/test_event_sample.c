/* SPDX-License-Identifier: Apache-2.0 */
/* The sample of an event, taken by the calling thread (frozen/signal/event.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "frozen/raw.h"
#include "frozen/signal/event.h"
#include "handler_rig.h"

#define RING 65536

static union {
	struct sf_record_header header;
	struct sf_stream_event event;
	struct sf_stream_event_loss loss;
	uint8_t bytes[RING];
} got;

static struct sf_thread_entry *entry;

static int start(void **state)
{
	(void)state;
	assert_true(sf_rig_start(SF_MODE_HANDLER, RING));
	sf_event_meter_init(&sf_handler.event, 0, 1000, sf_raw_now_ns());
	entry = sf_rig_enter(7, 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	sf_rig_leave(entry);
	sf_rig_stop();
	return 0;
}

static void take(const char *key, const char *value)
{
	ucontext_t context;
	const struct sf_event event = {
		.entry = entry, .ucontext = &context, .key = key, .key_size = (uint16_t)strlen(key), .value = value,
		.value_size = (uint16_t)strlen(value),
		.second_key = "size", .second_key_size = 4, .second_value = "56", .second_value_size = 2,
	};

	assert_int_equal(getcontext(&context), 0);
	sf_event_sample(&sf_handler, &event);
}

/* The next record; its type, 0: there is none. */
static uint16_t next(void)
{
	return sf_outbox_get(sf_handler.output.outbox, RING, &got, sizeof(got)) > 0 ? got.header.type : 0;
}

static uint32_t own_image(void)
{
	const struct sf_region *region = sf_code_map_find(sf_handler.code.map, (uint64_t)(uintptr_t)&take);

	assert_non_null(region);
	return region->image;
}

/*
 * The program of this test stands for the agent: none of its frames is in the sample, and main's caller in libc is the
 * first.
 */
static void a_sample_has_its_amount_and_label(void **state)
{
	const char *text;

	(void)state;
	atomic_store(&entry->event_amount, 42);
	take("type", "Demo.Odd");
	assert_int_equal(next(), SF_STREAM_EVENT);
	assert_int_equal(got.event.serial, 7);
	assert_int_equal(got.event.amount, 42);
	assert_in_range(got.event.time_ns, 1, sf_raw_now_ns());
	assert_true(got.event.n_frames > 0);
	assert_int_not_equal(got.event.frames[0].image, 0);
	assert_int_not_equal(got.event.frames[0].image, own_image());
	text = (const char *)&got.event.frames[got.event.n_frames];
	assert_int_equal(got.event.key_size + got.event.value_size, 12);
	assert_int_equal(got.event.second_key_size + got.event.second_value_size, 6);
	assert_memory_equal(text, "typeDemo.Oddsize56", 18);
	assert_int_equal(entry->event_amount, 0);
	assert_int_equal(next(), 0);
	assert_int_equal(sf_handler.event.n_in_window, 1);
}

/* All slots are taken, or the outbox is full: the amount waits for the thread's next sample. */
static void what_finds_no_room_is_not_forgotten(void **state)
{
	(void)state;
	atomic_store(&entry->event_amount, 5);
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
		assert_non_null(sf_slot_claim(sf_handler.link.slots, SF_RIG_SLOTS, 0));
	take("", "");
	assert_int_equal(entry->event_amount, 5);
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
		sf_slot_leave(&sf_handler.link.slots[i]);
	while (sf_outbox_reserve(sf_handler.output.outbox, 56))
		;
	take("", "");
	assert_int_equal(entry->event_amount, 5);
	for (uint32_t i = 0; i < SF_RIG_SLOTS; i++)
		assert_int_equal(sf_slot_state(sf_handler.link.slots[i].word), SF_SLOT_FREE);
}

static void a_rest_is_lost_once(void **state)
{
	(void)state;
	atomic_store(&entry->event_amount, 9);
	sf_event_lose(&sf_handler.output, entry);
	sf_event_lose(&sf_handler.output, entry);
	assert_int_equal(next(), SF_STREAM_EVENT_LOSS);
	assert_int_equal(got.loss.serial, 7);
	assert_int_equal(got.loss.cause, SF_LOSS_REST);
	assert_int_equal(got.loss.amount, 9);
	assert_int_equal(next(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_has_its_amount_and_label, start, stop),
		cmocka_unit_test_setup_teardown(what_finds_no_room_is_not_forgotten, start, stop),
		cmocka_unit_test_setup_teardown(a_rest_is_lost_once, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
