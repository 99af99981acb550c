/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a program that is not sampled: the agent's own words are missing, and all others are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/interpose/program.h"

#define OURS "/usr/lib/x86_64-linux-gnu/libstillframe-agent.so"
#define LIST "CORECLR_NOTIFICATION_PROFILERS_64="
#define ID "={6f1c2a54-3b7e-4d0f-9a8b-5e2d7c41f0a3}"
#define VARIABLE "STILLFRAME=out=x,first=1"

/* LD_PRELOAD of what `before` becomes; NULL: it is not there any more. */
static const char *preload_of(char *before)
{
	static char text[256];
	static char *words[8];
	char *const envp[] = { (char *)"A=1", (char *)VARIABLE, before, (char *)"STILLFRAMES=2", NULL };
	struct sf_environment_size size;
	size_t n = 0;

	assert_true(sf_environment_measure(envp, VARIABLE, &size));
	assert_int_equal(size.n, 5);
	assert_int_equal(size.n_bytes, strlen(before) + 1);
	memset(text, 'x', sizeof(text));
	sf_environment_copy(envp, VARIABLE, words, text);
	for (size_t i = size.n_bytes; i < sizeof(text); i++)
		assert_int_equal(text[i], 'x');
	while (words[n])
		n++;
	assert_ptr_equal(words[0], envp[0]);
	assert_ptr_equal(words[n - 1], envp[3]);
	return n == 3 ? words[1] : NULL;
}

static void test_only_ours_goes(void **state)
{
	(void)state;
	assert_null(preload_of((char *)"LD_PRELOAD=" OURS));
	assert_null(preload_of((char *)"LD_PRELOAD=libstillframe-agent.so"));
	assert_null(preload_of((char *)"LD_PRELOAD=: " OURS " :" OURS));
	assert_string_equal(preload_of((char *)"LD_PRELOAD=" OURS ":/lib/b.so"), "LD_PRELOAD=/lib/b.so");
	assert_string_equal(preload_of((char *)"LD_PRELOAD=/lib/a.so " OURS ":b.so"), "LD_PRELOAD=/lib/a.so:b.so");
	assert_string_equal(preload_of((char *)"LD_PRELOAD=/lib/a.so:" OURS), "LD_PRELOAD=/lib/a.so");
}

static void test_other_libraries_stay(void **state)
{
	(void)state;
	assert_string_equal(preload_of((char *)"LD_PRELOAD=/lib/otherlibstillframe-agent.so"),
			    "LD_PRELOAD=/lib/otherlibstillframe-agent.so");
	assert_string_equal(preload_of((char *)"LD_PRELOAD=" OURS ".1:" OURS), "LD_PRELOAD=" OURS ".1");
}

/* How many of these words are left, beside the two that bring the agent. */
static size_t left_of(const char *first, const char *second, const char *third)
{
	char *const envp[] = { (char *)VARIABLE, (char *)"LD_PRELOAD=" OURS, (char *)first, (char *)second, (char *)third, NULL };
	struct sf_environment_size size;
	char *words[8], text[256];
	size_t n = 0;

	assert_true(sf_environment_measure(envp, VARIABLE, &size));
	sf_environment_copy(envp, VARIABLE, words, text);
	while (words[n])
		n++;
	return n;
}

/* The words by which a runtime loads the agent go together; those of another profiler stay. */
static void test_a_runtime_that_loads_the_agent(void **state)
{
	const char *const on = "CORECLR_ENABLE_NOTIFICATION_PROFILERS=1", *const vendor = "CORECLR_ENABLE_PROFILING=1";

	(void)state;
	assert_int_equal(left_of(on, LIST OURS ID ";", vendor), 1);
	assert_int_equal(left_of(on, LIST "/lib/b.so" ID ";", vendor), 3);
	assert_int_equal(left_of(on, LIST OURS ID ";/lib/b.so" ID ";", vendor), 3);
	assert_int_equal(left_of(on, LIST OURS ID, vendor), 3);
	assert_int_equal(left_of(vendor, "CORECLR_PROFILER" ID, "CORECLR_PROFILER_PATH_64=" OURS), 0);
	assert_int_equal(left_of(vendor, "CORECLR_PROFILER" ID, "CORECLR_PROFILER_PATH_64=/lib/b.so"), 3);
	assert_int_equal(left_of(vendor, "CORECLR_PROFILER={00000000-0000-0000-0000-000000000001}", "CORECLR_PROFILER_PATH_64=" OURS), 3);
	assert_int_equal(left_of("CORECLR_ENABLE_NOTIFICATION_PROFILERS=0", LIST OURS ID ";", vendor), 3);
}

static void test_nothing_to_do(void **state)
{
	char *const no_library[] = { (char *)"LD_PRELOAD=/lib/b.so", (char *)VARIABLE, NULL };
	char *const of_the_program[] = { (char *)"LD_PRELOAD=" OURS, (char *)"STILLFRAME=out=y", NULL };
	struct sf_environment_size size;

	(void)state;
	assert_false(sf_environment_measure(no_library, VARIABLE, &size));
	assert_false(sf_environment_measure(of_the_program, VARIABLE, &size));
	assert_false(sf_environment_measure(NULL, VARIABLE, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_ours_goes),
		cmocka_unit_test(test_other_libraries_stay),
		cmocka_unit_test(test_a_runtime_that_loads_the_agent),
		cmocka_unit_test(test_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
