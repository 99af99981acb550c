/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of --filter: what is one, and which processes fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "capture/process_filter.h"

static bool fits(const char *first, const char *second, const char *name, uint32_t user)
{
	const struct sf_strings texts = { .n = second ? 2 : 1, .items = { first, second } };
	struct sf_process_filter filter;
	bool answer;

	assert_true(sf_process_filter_init(&filter, &texts, NULL));
	answer = sf_process_filter_fits(&filter, name, user);
	sf_process_filter_deinit(&filter);
	return answer;
}

static void test_conditions(void **state)
{
	(void)state;
	assert_true(fits("name=^ngi", NULL, "nginx", 33));
	assert_false(fits("name=^gin", NULL, "nginx", 33));
	assert_true(fits("name=gin|apache", NULL, "apache2", 33));
	assert_true(fits("user=33", NULL, "nginx", 33));
	assert_false(fits("user=33", NULL, "nginx", 34));
	assert_true(fits("user=root", NULL, "nginx", 0));
	assert_true(fits("name=nginx", "user=33", "nginx", 33));
	assert_false(fits("name=nginx", "user=33", "nginx", 0));
	assert_false(fits("user=33", "name=nginx", "apache2", 33));
	assert_true(sf_process_filter_fits(NULL, "nginx", 33));
}

static void test_what_is_none(void **state)
{
	static const char *const wrong[] = { "", "nginx", "name", "NAME=x", "name=(", "user=", "user=no such user", "user=-1",
					     "user=4294967295", "user=0x1" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct sf_strings texts = { .n = 2, .items = { "name=a", wrong[i] } };
		struct sf_process_filter filter;
		struct sf_error err = { 0 };

		assert_false(sf_process_filter_init(&filter, &texts, &err));
		assert_non_null(strstr(err.text, "--filter: "));
		sf_process_filter_deinit(&filter);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
