/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator, replaced for the whole program by one that first calls check_thawed(), which whoever includes this has
 * defined before and which aborts where nothing may allocate. Once in a program. glibc's own names do the work.
 */
#ifndef SF_TESTS_FROZEN_REPLACED_ALLOCATOR_H
#define SF_TESTS_FROZEN_REPLACED_ALLOCATOR_H

#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

#define REPLACEMENT __attribute__((visibility("default")))

REPLACEMENT void *malloc(size_t size)
{
	check_thawed();
	return __libc_malloc(size);
}

REPLACEMENT void *calloc(size_t n, size_t size)
{
	check_thawed();
	return __libc_calloc(n, size);
}

REPLACEMENT void *realloc(void *p, size_t size)
{
	check_thawed();
	return __libc_realloc(p, size);
}

REPLACEMENT void free(void *p)
{
	check_thawed();
	__libc_free(p);
}

#endif
