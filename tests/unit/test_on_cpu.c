/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of a thread at its end: by the records of its switches, and by the kernel's record of its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/ptrace/account.h"

#define MS UINT64_C(1000000)

static const struct sf_switches none = { 0 }, all = { .are_recorded = true, .from_ns = 50 * MS },
				paused = { .are_recorded = true, .from_ns = UINT64_MAX };

static void runs(struct sf_on_cpu *on_cpu, uint64_t from_ms, uint64_t to_ms)
{
	sf_on_cpu_switch(on_cpu, from_ms * MS, false);
	sf_on_cpu_switch(on_cpu, to_ms * MS, true);
}

/* What it ran since the count was read; whatever the record of its end says, which may be another thread's. */
static void test_records_of_switches(void **state)
{
	struct sf_on_cpu on_cpu = { 0 };

	(void)state;
	sf_on_cpu_counted(&on_cpu, 7 * MS, 60 * MS);
	runs(&on_cpu, 50, 55);      /* is in the count */
	runs(&on_cpu, 100, 102);
	runs(&on_cpu, 110, 113);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 0, &all, 120 * MS), 12 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 13 * MS, &all, 120 * MS), 12 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 60 * MS, &all, 120 * MS), 12 * MS);
	sf_on_cpu_counted(&on_cpu, 12 * MS, 120 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 0, &all, 130 * MS), 12 * MS);
}

/* The kernel's count of a thread that runs is late. The record of the end has what it lacks. */
static void test_one_that_ran_when_it_was_counted(void **state)
{
	struct sf_on_cpu on_cpu = { 0 };

	(void)state;
	sf_on_cpu_switch(&on_cpu, 50 * MS, false);
	sf_on_cpu_counted(&on_cpu, 6 * MS, 60 * MS);
	sf_on_cpu_switch(&on_cpu, 65 * MS, true);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 0, &all, 120 * MS), 11 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 15 * MS, &all, 120 * MS), 15 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 60 * MS, &all, 120 * MS), 11 * MS);
	sf_on_cpu_switch(&on_cpu, 70 * MS, false);
	sf_on_cpu_counted(&on_cpu, 15 * MS, 71 * MS);
	sf_on_cpu_switch(&on_cpu, 72 * MS, true);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 17 * MS, &all, 120 * MS), 17 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 18 * MS, &all, 120 * MS), 16 * MS); /* it had run for a millisecond */
}

/* The first record of a thread that ran before there were any says that it leaves its CPU. */
static void test_one_that_ran_before_the_records(void **state)
{
	struct sf_on_cpu on_cpu = { 0 };

	(void)state;
	sf_on_cpu_counted(&on_cpu, 5 * MS, 60 * MS);
	sf_on_cpu_switch(&on_cpu, 64 * MS, true);
	sf_on_cpu_switch(&on_cpu, 64 * MS + 5, true); /* while the events are renewed each is recorded twice */
	runs(&on_cpu, 70, 71);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 0, &all, 120 * MS), 10 * MS);
}

/* Records were lost before the count was read: the next one may say that the thread leaves a CPU that it got meanwhile. */
static void test_after_a_loss(void **state)
{
	struct sf_on_cpu on_cpu = { 0 };

	(void)state;
	runs(&on_cpu, 40, 45);
	sf_on_cpu_forget(&on_cpu);
	sf_on_cpu_counted(&on_cpu, 5 * MS, 60 * MS);
	sf_on_cpu_switch(&on_cpu, 64 * MS, true);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 0, &all, 120 * MS), 9 * MS);
}

/* Records are missing since the count was read, or there are none. */
static void test_without_records(void **state)
{
	struct sf_on_cpu on_cpu = { 0 };

	(void)state;
	assert_int_equal(sf_on_cpu_end(&on_cpu, 900 * MS, &none, 120 * MS), 900 * MS); /* never seen alive */
	sf_on_cpu_counted(&on_cpu, 7 * MS, 20 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 60 * MS, &none, 120 * MS), 60 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 5 * MS, &none, 120 * MS), 7 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 200 * MS, &none, 120 * MS), 7 * MS); /* it was not on a CPU for so long */
	runs(&on_cpu, 100, 102);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 60 * MS, &all, 120 * MS), 7 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 12 * MS, &all, 120 * MS), 12 * MS);
	assert_int_equal(sf_on_cpu_end(&on_cpu, 12 * MS, &paused, 120 * MS), 12 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_of_switches),
		cmocka_unit_test(test_one_that_ran_when_it_was_counted),
		cmocka_unit_test(test_one_that_ran_before_the_records),
		cmocka_unit_test(test_after_a_loss),
		cmocka_unit_test(test_without_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
