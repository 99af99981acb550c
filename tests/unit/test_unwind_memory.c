/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation of src/unwind and src/base fails, for every n: building a table then says
 * so, leaks nothing, and never gives a table with fewer rows, which the cache would keep.
 * Linked with --wrap=malloc,calloc,realloc; what libelf and liblzma allocate is left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/unwind.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static size_t n_left = SIZE_MAX; /* allocations until one fails */

static bool fails(void)
{
	return n_left != SIZE_MAX && n_left-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

static void each_allocation_may_fail(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct sf_error err;
	void *whole, *block;
	size_t whole_size, size, n_failed = 0;
	(void)state;

	assert_true(sf_unwind_build(fd, &whole, &whole_size, NULL));
	for (size_t n = 0;; n++) {
		bool ok;

		n_left = n;
		ok = sf_unwind_build(fd, &block, &size, &err);
		if (n_left != SIZE_MAX && ok) { /* nothing was left to fail */
			n_left = SIZE_MAX;
			break;
		}
		n_left = SIZE_MAX;
		assert_false(ok);
		assert_int_equal(err.code, SF_E_NO_MEMORY);
		n_failed++;
	}
	assert_true(n_failed >= 10);
	assert_int_equal(size, whole_size);
	assert_memory_equal(block, whole, size);
	sf_unwind_close(block, size);
	sf_unwind_close(whole, whole_size);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_allocation_may_fail) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
