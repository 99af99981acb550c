/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread was held, at most: since the stop that woke us, or where we did not sleep, since the last look. The
 * clock and our own counts are replaced (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/ptrace/hold_time.h"

static uint64_t now_ns;
static struct sf_task_run own;
static unsigned n_counts;

uint64_t __wrap_sf_now_ns(void);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	n_counts++;
	*ret = own;
	return true;
}

static int set_up(void **state)
{
	(void)state;
	n_counts = 0;
	own = (struct sf_task_run){ .wait_ns = 500, .switches = 10 };
	return 0;
}

/* Asked for at 100; nobody stood at 200; the answer is there at 1000; let go at 1100. */
static uint64_t held(bool may_sleep, uint64_t slept, uint64_t waited_ns)
{
	struct sf_hold_time time = { .free_ns = 200 };

	sf_hold_time_wait(&time, may_sleep);
	own.switches += slept;
	own.wait_ns += waited_ns;
	now_ns = 1000;
	sf_hold_time_answer(&time);
	now_ns = 1100;
	return sf_hold_time_released(&time, 100);
}

static void test_it_woke_us(void **state)
{
	(void)state;
	assert_int_equal(held(true, 1, 30), 130);
	assert_int_equal(n_counts, 2);
}

static void test_it_stood_already(void **state)
{
	(void)state;
	assert_int_equal(held(true, 0, 0), 900);
}

/* Two threads stand when the first of them wakes us: the second one stands while that one is released. */
static void test_each_of_several(void **state)
{
	struct sf_hold_time time = { .free_ns = 200 };

	(void)state;
	sf_hold_time_wait(&time, true);
	own.switches++;
	own.wait_ns += 300;
	now_ns = 1000;
	sf_hold_time_answer(&time);
	assert_int_equal(sf_hold_time_released(&time, 100), 300);
	assert_int_equal(time.stood_ns, 700);
	sf_hold_time_wait(&time, true);
	now_ns = 1100;
	sf_hold_time_answer(&time);
	now_ns = 1200;
	assert_int_equal(sf_hold_time_released(&time, 100), 500);
	assert_int_equal(time.stood_ns, 1100);
}

/* None stood when the look began, or when the alarm woke us. Until we look at the clock again one may stand for long. */
static void test_no_answer(void **state)
{
	struct sf_hold_time time = { .free_ns = 200 };

	(void)state;
	now_ns = 300;
	sf_hold_time_wait(&time, false);
	now_ns = 900;
	sf_hold_time_no_answer(&time);
	assert_int_equal(time.free_ns, 300);
	sf_hold_time_wait(&time, true);
	own.switches++;
	own.wait_ns += 400;
	now_ns = 2000;
	sf_hold_time_no_answer(&time);
	assert_int_equal(time.free_ns, 1600);
}

/* Where we look without waiting our own counts are not read: they cost as much as the look. */
static void test_a_look_costs_no_counts(void **state)
{
	(void)state;
	assert_int_equal(held(false, 0, 0), 900);
	assert_int_equal(held(false, 1, 30), 900); /* displaced meanwhile: it still is a bound */
	assert_int_equal(n_counts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_it_woke_us, set_up),
		cmocka_unit_test_setup(test_it_stood_already, set_up),
		cmocka_unit_test_setup(test_each_of_several, set_up),
		cmocka_unit_test_setup(test_no_answer, set_up),
		cmocka_unit_test_setup(test_a_look_costs_no_counts, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
