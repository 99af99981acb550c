/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a thread: it counts if two readings agree, and each reading is of memory that was read for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/runtimes.h"

#define TID 7

/* The process, and what the driver's memory of it holds. */
struct process {
	const char *names[4];      /* by the number of renewals; NULL: the name cannot be read */
	unsigned n_renewals;
	unsigned n_readings;
};

static void renew(void *arg)
{
	struct process *process = arg;

	process->n_renewals++;
}

static enum sf_naming thread_name(void *state, int32_t tid, char *ret, size_t size)
{
	struct process *process = state;
	const char *name = process->names[process->n_renewals];

	assert_int_equal(tid, TID);
	process->n_readings++;
	if (!name)
		return SF_NAMED_LATER;
	snprintf(ret, size, "%s", name);
	return *name ? SF_NAMED : SF_UNNAMED;
}

/* In the place of the library's: the linker takes this one. */
const struct sf_runtime_driver sf_coreclr_driver = { .thread_name = thread_name };

static uint32_t slot_of_driver(void)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (sf_runtimes_driver(i) == &sf_coreclr_driver)
			return i;
	}
	fail_msg("the driver is not in the list");
	return 0;
}

static enum sf_naming name_of(struct process *process, char ret[SF_RUNTIME_NAME])
{
	static const struct sf_runtime object;
	struct sf_runtimes runtimes = { 0 };
	const uint32_t slot = slot_of_driver();

	runtimes.attached[slot] = &object;
	runtimes.states[slot] = process;
	return sf_runtimes_thread_name(&runtimes, TID, renew, process, ret);
}

static void test_two_readings_agree(void **state)
{
	struct process process = { .names = { "old", "worker", "worker" } };
	char name[SF_RUNTIME_NAME];

	(void)state;
	assert_int_equal(name_of(&process, name), SF_NAMED);
	assert_string_equal(name, "worker");
	assert_int_equal(process.n_readings, 2);
	assert_int_equal(process.n_renewals, 2);
}

static void test_two_readings_differ(void **state)
{
	struct process moved = { .names = { "worker", "worker", "another" } }, gone = { .names = { "worker", "worker", NULL } };
	struct process moves = { .names = { "worker", NULL, "worker" } };
	char name[SF_RUNTIME_NAME];

	(void)state;
	assert_int_equal(name_of(&moved, name), SF_NAMED_LATER);
	assert_int_equal(name_of(&gone, name), SF_NAMED_LATER);
	assert_int_equal(name_of(&moves, name), SF_NAMED_LATER);
}

static void test_a_thread_without_a_name_is_read_once(void **state)
{
	struct process process = { .names = { "worker", "", "worker" } };
	char name[SF_RUNTIME_NAME];

	(void)state;
	assert_int_equal(name_of(&process, name), SF_UNNAMED);
	assert_int_equal(process.n_readings, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_readings_agree),
		cmocka_unit_test(test_two_readings_differ),
		cmocka_unit_test(test_a_thread_without_a_name_is_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
