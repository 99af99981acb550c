/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of processes that have no sample yet, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/perf/newcomers.h"

static void assert_taken(struct sf_perf_newcomers *newcomers, int32_t pid, int32_t parent, const char *name, uint64_t exec_ns)
{
	struct sf_perf_newcomer found;

	sf_perf_newcomers_take(newcomers, pid, &found);
	assert_int_equal(found.pid, pid);
	assert_int_equal(found.parent, parent);
	assert_string_equal(found.name, name);
	assert_int_equal(found.exec_ns, exec_ns);
}

static void test_names(void **state)
{
	struct sf_perf_newcomers newcomers = { 0 };

	(void)state;
	sf_perf_newcomers_fork(&newcomers, 30, 10, "sh", 1);
	sf_perf_newcomers_fork(&newcomers, 20, 30, "sh", 1);
	sf_perf_newcomers_exec(&newcomers, 20, "cc", 5);
	sf_perf_newcomers_exec(&newcomers, 40, "a name of many bytes", 6); /* it began before */
	assert_string_equal(sf_perf_newcomers_find(&newcomers, 20)->name, "cc");
	assert_null(sf_perf_newcomers_find(&newcomers, 25));
	assert_taken(&newcomers, 20, 30, "cc", 5);
	assert_taken(&newcomers, 20, 0, "", 0); /* once */
	assert_taken(&newcomers, 30, 10, "sh", 0);
	assert_taken(&newcomers, 40, 0, "a name of many ", 6);
	assert_int_equal(newcomers.known.n, 0);
	sf_perf_newcomers_deinit(&newcomers);
}

/* An id that is given to another process tells of that one. */
static void test_ends(void **state)
{
	struct sf_perf_newcomers newcomers = { 0 };

	(void)state;
	for (int32_t pid = 1; pid <= 100; pid++) {
		sf_perf_newcomers_fork(&newcomers, pid, 1000, "sh", 1);
		sf_perf_newcomers_exit(&newcomers, pid, (uint64_t)pid);
	}
	for (int32_t pid = 1; pid < 50; pid++)
		assert_int_equal(sf_perf_newcomers_next_ended(&newcomers, 50), pid);
	assert_int_equal(sf_perf_newcomers_next_ended(&newcomers, 50), 0);
	assert_int_equal(newcomers.known.n, 51);
	sf_perf_newcomers_exit(&newcomers, 7, 200); /* with a sample, or unknown */
	while (sf_perf_newcomers_next_ended(&newcomers, 201))
		;
	assert_int_equal(newcomers.known.n, 0);
	assert_int_equal(newcomers.ended.n, 0);
	sf_perf_newcomers_fork(&newcomers, 7, 11, "sh", 1);
	sf_perf_newcomers_fork(&newcomers, 7, 12, "make", 1);
	assert_taken(&newcomers, 7, 12, "make", 0);
	sf_perf_newcomers_deinit(&newcomers);
}

static int32_t origin_of(const struct sf_perf_newcomers *newcomers, int32_t parent, uint64_t began_ns)
{
	return sf_perf_newcomers_origin(newcomers, &(struct sf_perf_newcomer){ .parent = parent, .began_ns = began_ns });
}

/* Whose code and name a process has: of the ancestors only those that ran a program, or are not known here, have their own. */
static void test_origins(void **state)
{
	struct sf_perf_newcomers newcomers = { 0 };

	(void)state;
	sf_perf_newcomers_fork(&newcomers, 30, 20, "", 7);
	sf_perf_newcomers_fork(&newcomers, 20, 15, "sh", 3);
	sf_perf_newcomers_fork(&newcomers, 15, 10, "sh", 2);
	sf_perf_newcomers_fork(&newcomers, 10, 0, "init", 0); /* runs already */
	assert_int_equal(origin_of(&newcomers, 30, 9), 10);
	assert_int_equal(origin_of(&newcomers, 10, 9), 10);
	sf_perf_newcomers_exec(&newcomers, 20, "cc", 5);
	assert_int_equal(origin_of(&newcomers, 30, 9), 20);
	assert_int_equal(origin_of(&newcomers, 15, 9), 10);
	assert_int_equal(origin_of(&newcomers, 99, 9), 99);
	assert_int_equal(origin_of(&newcomers, 0, 9), 0);
	sf_perf_newcomers_fork(&newcomers, 10, 15, "sh", 1); /* a circle */
	assert_in_range(origin_of(&newcomers, 15, 9), 10, 15);
	sf_perf_newcomers_deinit(&newcomers);
}

/* A child that began before its parent's exec has the code that the parent had then. */
static void test_execs_behind_forks(void **state)
{
	struct sf_perf_newcomers newcomers = { 0 };

	(void)state;
	sf_perf_newcomers_fork(&newcomers, 20, 10, "sh", 3);
	sf_perf_newcomers_exec(&newcomers, 20, "last", 8);
	sf_perf_newcomers_exec(&newcomers, 20, "cc", 5); /* from the ring of another CPU */
	assert_int_equal(origin_of(&newcomers, 20, 4), 10);
	assert_int_equal(origin_of(&newcomers, 20, 6), 20);
	assert_string_equal(sf_perf_newcomers_find(&newcomers, 20)->name, "last");
	sf_perf_newcomers_fork(&newcomers, 20, 10, "sh", 9); /* the id is given again */
	assert_int_equal(origin_of(&newcomers, 20, 10), 10);
	sf_perf_newcomers_deinit(&newcomers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_execs_behind_forks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
