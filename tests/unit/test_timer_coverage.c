/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that runs between the kernel's ticks is told from one that is met seldom by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/clocks/clocks.h"

#define PERIOD 4000000u
#define JUDGED (32 * (uint64_t)PERIOD) /* of CPU time */
#define SILENT (20 * (uint64_t)PERIOD)

static const uint64_t began = 12345;

/* How often it was said that it dodges, when each time that it is judged it has so many samples more. */
static unsigned judge(const unsigned *samples, unsigned n)
{
	uint64_t n_samples = 1000;
	struct sf_timer_coverage coverage;
	unsigned said = 0;

	sf_timer_coverage_begin(&coverage, began, n_samples);
	for (unsigned i = 1; i <= n; i++) {
		n_samples += samples[i - 1];
		assert_false(sf_timer_misses(&coverage, began + i * JUDGED - 1, n_samples, PERIOD));
		said += sf_timer_misses(&coverage, began + i * JUDGED, n_samples, PERIOD);
	}
	return said;
}

/* Since its last sample, wherever that was; a look that finds one begins anew. */
static void test_not_met_for_long(void **state)
{
	struct sf_timer_coverage coverage;

	(void)state;
	sf_timer_coverage_begin(&coverage, began, 7);
	assert_false(sf_timer_misses(&coverage, began + SILENT - 1, 7, PERIOD));
	assert_true(sf_timer_misses(&coverage, began + SILENT, 7, PERIOD));
	sf_timer_coverage_begin(&coverage, began, 7);
	assert_false(sf_timer_misses(&coverage, began + PERIOD, 8, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + PERIOD + SILENT - 1, 8, PERIOD));
	assert_true(sf_timer_misses(&coverage, began + PERIOD + SILENT, 8, PERIOD));
	sf_timer_coverage_begin(&coverage, began, 7);
	assert_false(sf_timer_misses(&coverage, began + SILENT, 8, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + 2 * SILENT - 1, 8, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + 2 * SILENT, 38, PERIOD));
}

static void test_half_is_enough(void **state)
{
	(void)state;
	assert_int_equal(judge((unsigned[]){ 15, 15 }, 2), 1);
	assert_int_equal(judge((unsigned[]){ 16, 16, 16, 16 }, 4), 0);
	assert_int_equal(judge((unsigned[]){ 32, 32 }, 2), 0);
}

/* Once in a while is nothing. */
static void test_by_chance(void **state)
{
	(void)state;
	assert_int_equal(judge((unsigned[]){ 15, 16, 15, 32, 1, 31, 15 }, 7), 0);
	assert_int_equal(judge((unsigned[]){ 15, 16, 15, 14 }, 4), 1);
}

/* A look that came late judges all that was due until then, and begins anew. */
static void test_late(void **state)
{
	struct sf_timer_coverage coverage;

	(void)state;
	sf_timer_coverage_begin(&coverage, began, 0);
	assert_false(sf_timer_misses(&coverage, began + 5 * JUDGED, 79, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + 6 * JUDGED - 1, 80, PERIOD));
	assert_true(sf_timer_misses(&coverage, began + 6 * JUDGED, 80, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + 11 * JUDGED, 80 + 80, PERIOD));
	assert_false(sf_timer_misses(&coverage, began + 12 * JUDGED, 161, PERIOD));
	assert_true(sf_timer_misses(&coverage, began + 13 * JUDGED, 162, PERIOD));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_met_for_long), cmocka_unit_test(test_half_is_enough),
		cmocka_unit_test(test_by_chance), cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
