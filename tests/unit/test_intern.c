/* SPDX-License-Identifier: Apache-2.0 */
/* Interned byte strings: dense numbers from 1, stable pointers, any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/intern.h"

static void numbers_are_dense_and_stable(void **state)
{
	struct sf_intern *intern = sf_intern_create();
	const char *first;
	(void)state;

	assert_non_null(intern);
	assert_int_equal(sf_intern_string(intern, "a"), 1);
	first = sf_intern_get(intern, 1, NULL);
	for (unsigned i = 0; i < 100000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "n%u", i);
		assert_int_equal(sf_intern_string(intern, text), i + 2);
	}
	assert_ptr_equal(sf_intern_get(intern, 1, NULL), first);
	assert_string_equal(first, "a");
	assert_int_equal(sf_intern_string(intern, "n99999"), 100001);
	assert_int_equal(sf_intern_count(intern), 100001);
	sf_intern_destroy(intern);
}

static void any_bytes_even_none(void **state)
{
	struct sf_intern *intern = sf_intern_create();
	size_t size;
	bool is_new;
	(void)state;

	assert_int_equal(sf_intern_add(intern, "", 0, &is_new), 1);
	assert_true(is_new);
	assert_int_equal(sf_intern_add(intern, "\0", 1, &is_new), 2);
	assert_int_equal(sf_intern_add(intern, "\0\0", 2, &is_new), 3);
	assert_int_equal(sf_intern_add(intern, "\0", 1, &is_new), 2);
	assert_false(is_new);
	sf_intern_get(intern, 3, &size);
	assert_int_equal(size, 2);
	sf_intern_destroy(intern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_dense_and_stable),
		cmocka_unit_test(any_bytes_even_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
