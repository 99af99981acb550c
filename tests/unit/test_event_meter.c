/* SPDX-License-Identifier: Apache-2.0 */
/* The count of an event, and which occurrences are sampled (frozen/signal/event.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "frozen/signal/event.h"

static struct sf_event_meter meter;

/* How many of `n` occurrences are sampled; all of them take no time. */
static unsigned count(unsigned n, uint64_t amount, bool pace)
{
	unsigned n_due = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!sf_event_count(&meter, amount))
			continue;
		n_due++;
		if (pace)
			sf_event_pace(&meter, amount, 1);
	}
	return n_due;
}

static void each_is_sampled_where_there_are_few(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	assert_int_equal(count(99, 1, true), 99);
	assert_int_equal(meter.counted, 99);
	assert_int_equal(meter.each, 1);
}

/* A tenth of a second's budget is used up: the next ones are rarer, and the count is of all. */
static void many_are_thinned_out(void **state)
{
	unsigned n;

	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	n = count(100000, 1, true);
	assert_int_equal(meter.counted, 100000);
	assert_in_range(n, 300, 1400); /* each tenfold has about 330 */
	assert_in_range(meter.each, 64, 2048);
}

/* Rare again: they are as often as before, a step in each tenth of a second that has a sample. */
static void few_are_frequent_again(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	count(100000, 1, true);
	for (uint64_t i = 1; i < 20; i++)
		sf_event_pace(&meter, 1, 1 + i * SF_EVENT_WINDOW_NS);
	assert_int_equal(meter.each, 1);
}

/* Bytes come in large amounts: the mean does not grow from 1 in steps of which none matters. */
static void a_mean_is_not_below_the_amounts(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	count(100, 100000, true);
	assert_int_equal(meter.each, 200000);
}

static void the_users_distance_is_exact(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 10, 1000, 1);
	assert_int_equal(count(9, 1, true), 0);
	assert_int_equal(count(1, 1, true), 1);
	assert_int_equal(count(100000 - 10, 1, true), 9999);
	/* One that reaches several is one sample, and the next is due at the next multiple. */
	assert_int_equal(count(1, 35, true), 1);
	assert_int_equal(count(4, 1, true), 0);
	assert_int_equal(count(1, 1, true), 1);
}

/* Every second occurrence is of another kind: half of the samples are. */
static void no_program_falls_into_step(void **state)
{
	unsigned n[2] = { 0, 0 };

	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 12345);
	meter.each = 8;
	for (unsigned i = 0; i < 80000; i++)
		n[i % 2] += sf_event_count(&meter, 1);
	assert_in_range(n[0] + n[1], 9000, 11000);
	assert_in_range(n[0], (n[0] + n[1]) * 45 / 100, (n[0] + n[1]) * 55 / 100);
}

/* Another thread has counted, and drawn, meanwhile. */
static void each_is_sampled_whoever_was_first(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	atomic_store(&meter.due, 50);
	assert_true(sf_event_count(&meter, 1));
}

static void nothing_is_counted_while_it_is_off(void **state)
{
	(void)state;
	sf_event_meter_init(&meter, 0, 1000, 1);
	assert_false(sf_event_begin(&meter));
	assert_int_equal(meter.n_inside, 0);
	atomic_store(&meter.on, true);
	assert_true(sf_event_begin(&meter));
	assert_int_equal(meter.n_inside, 1);
	sf_event_end(&meter);
	assert_int_equal(meter.n_inside, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_sampled_where_there_are_few),
		cmocka_unit_test(many_are_thinned_out),
		cmocka_unit_test(few_are_frequent_again),
		cmocka_unit_test(a_mean_is_not_below_the_amounts),
		cmocka_unit_test(the_users_distance_is_exact),
		cmocka_unit_test(no_program_falls_into_step),
		cmocka_unit_test(each_is_sampled_whoever_was_first),
		cmocka_unit_test(nothing_is_counted_while_it_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
