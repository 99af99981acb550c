/* SPDX-License-Identifier: Apache-2.0 */
/* What samples of sleeping threads may cost inside a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/sampler/blocked_sample.h"

#define MS UINT64_C(1000000)
#define COST_NS 20000

static struct sf_sleep_budget budget;
static uint64_t now_ns;

/* A round of looks, 50 ms after the last one, at which so many samples are due. How many were taken. */
static unsigned round_of(unsigned n, bool first)
{
	unsigned taken = 0;

	now_ns += 50 * MS;
	sf_sleep_budget_round(&budget, now_ns);
	for (unsigned i = 0; i < n; i++) {
		if (!sf_sleep_budget_has_room(&budget, first))
			continue;
		taken++;
		sf_sleep_budget_taken(&budget, COST_NS);
	}
	return taken;
}

static int set_up(void **state)
{
	(void)state;
	now_ns = 1000 * MS;
	sf_sleep_budget_begin(&budget, 2, now_ns);
	return 0;
}

/* 50 ms of two CPUs allow 1 ms: 50 samples. */
static void what_costs_no_more_is_taken(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(round_of(50, false), 50);
}

static void more_is_passed_over_at_random(void **state)
{
	unsigned taken = 0;

	(void)state;
	assert_int_equal(round_of(1000, false), 1000); /* what they cost is not known yet */
	for (int i = 0; i < 100; i++)
		taken += round_of(1000, false);
	assert_in_range(taken, 4500, 5500);
	assert_in_range(round_of(40, false), 0, 10); /* by what the last round has found ... */
	assert_int_equal(round_of(40, false), 40);   /* ... so the next one takes all again */
}

/* The cost of one is known from the last round that had one. */
static void rounds_without_samples(void **state)
{
	(void)state;
	round_of(1000, false);
	round_of(0, false);
	assert_int_equal(round_of(1000, false), 1000);
	assert_in_range(round_of(1000, false), 10, 100);
}

static void each_thread_has_one(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(round_of(1000, true), 1000);
	assert_in_range(round_of(1000, false), 10, 100);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_costs_no_more_is_taken), TEST(more_is_passed_over_at_random), TEST(rounds_without_samples), TEST(each_thread_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
