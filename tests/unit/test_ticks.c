/* SPDX-License-Identifier: Apache-2.0 */
/* How many ticks a sample stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frozen/signal/ticks.h"

static void test_one(void **state)
{
	(void)state;
	assert_int_equal(sf_ticks(1499, 1000), 1);
	assert_int_equal(sf_ticks(1500, 1000), 2);
	assert_int_equal(sf_ticks(0, 1000), 1);
	assert_int_equal(sf_ticks(99, 0), 1);
	assert_int_equal(sf_ticks(UINT64_MAX, 1), UINT32_MAX);
}

static uint64_t take(unsigned n, uint64_t ns)
{
	int64_t over_ns = 0;
	uint64_t ticks = 0;

	for (unsigned i = 0; i < n; i++)
		ticks += sf_ticks_take(&over_ns, ns, 1000);
	return ticks;
}

static void test_they_add_up(void **state)
{
	(void)state;
	assert_int_equal(take(100, 1000), 100);
	assert_int_equal(take(100, 1400), 140);   /* each less than half a period late */
	assert_int_equal(take(100, 2600), 260);
	assert_int_equal(take(100, 100), 100);    /* at least one each ... */
}

static void test_many_short_ones_are_no_debt(void **state)
{
	int64_t over_ns = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		sf_ticks_take(&over_ns, 0, 1000);
	assert_true(sf_ticks_take(&over_ns, 5000, 1000) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_they_add_up),
		cmocka_unit_test(test_many_short_ones_are_no_debt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
