/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a thread, and awaiters: they count if two readings agree, and each reading is of memory that was read for it. */
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
	uint64_t awaiters[6];      /* the token of the only one, by the number of the reading; 0: there is none */
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

static uint32_t awaiters(void *state, const struct sf_still *still, const struct sf_trace *trace, struct sf_frame *ret,
			 uint32_t capacity, uint32_t *at_ret)
{
	struct process *process = state;
	const uint64_t token = process->awaiters[process->n_readings++];

	assert_null(still);
	assert_int_equal(trace->n_frames, 9);
	assert_true(capacity > 0);
	*ret = (struct sf_frame){ .token = token };
	*at_ret = 5;
	return token != 0;
}

/* In the place of the library's: the linker takes this one. */
const struct sf_runtime_driver sf_coreclr_driver = { .thread_name = thread_name, .awaiters = awaiters };

static uint32_t slot_of_driver(void)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (sf_runtimes_driver(i) == &sf_coreclr_driver)
			return i;
	}
	fail_msg("the driver is not in the list");
	return 0;
}

static struct sf_runtimes runtimes_of(struct process *process)
{
	static const struct sf_runtime object;
	struct sf_runtimes runtimes = { 0 };
	const uint32_t slot = slot_of_driver();

	runtimes.attached[slot] = &object;
	runtimes.states[slot] = process;
	return runtimes;
}

static enum sf_naming name_of(struct process *process, char ret[SF_RUNTIME_NAME])
{
	struct sf_runtimes runtimes = runtimes_of(process);

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

/* The token of the awaiter; 0: there is none. */
static uint64_t awaiter_of(struct process *process)
{
	struct sf_runtimes runtimes = runtimes_of(process);
	const struct sf_trace trace = { .n_frames = 9 };
	struct sf_frame frames[SF_MAX_AWAITERS];
	uint32_t at = 0;
	const uint32_t n = sf_runtimes_awaiters(&runtimes, NULL, &trace, renew, process, frames, &at);

	assert_true(!n || at == 5);
	return n ? frames[0].token : 0;
}

static void test_awaiters_count_if_two_readings_agree(void **state)
{
	struct process same = { .awaiters = { 11, 11, 12 } }, none = { .awaiters = { 0, 11, 11 } };
	struct process completed = { .awaiters = { 11, 12, 12 } }, moves = { .awaiters = { 11, 12, 11, 12, 12 } };

	(void)state;
	assert_int_equal(awaiter_of(&same), 11);
	assert_int_equal(same.n_readings, 2);
	assert_int_equal(same.n_renewals, 1);
	assert_int_equal(awaiter_of(&none), 0);
	assert_int_equal(none.n_readings, 1);
	assert_int_equal(awaiter_of(&completed), 12);
	assert_int_equal(awaiter_of(&moves), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_readings_agree),
		cmocka_unit_test(test_two_readings_differ),
		cmocka_unit_test(test_a_thread_without_a_name_is_read_once),
		cmocka_unit_test(test_awaiters_count_if_two_readings_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
