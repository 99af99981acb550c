/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcpy and related functions, for the shared library's own use (hidden). Signal-safe. A sanitizer may
 * replace libc's functions in a program. Its versions record every access, also in a signal handler and
 * in held threads. They do not see our atomic words, and would report correct accesses as races.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/libc/hidden.h"

#if defined(__x86_64__)

/* As fast as libc's from some hundred bytes on (Intel: "Enhanced REP MOVSB and STOSB"). */
SF_HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

SF_HIDDEN void *memset(void *to, int byte, size_t size)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(byte) : "memory");
	return to;
}

#else

/* volatile: the compiler would make a call of memcpy out of the loop. */
SF_HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	volatile uint8_t *at = to;
	const uint8_t *bytes = from;

	for (size_t i = 0; i < size; i++)
		at[i] = bytes[i];
	return to;
}

SF_HIDDEN void *memset(void *to, int byte, size_t size)
{
	volatile uint8_t *at = to;

	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)byte;
	return to;
}

#endif

SF_HIDDEN void *memmove(void *to, const void *from, size_t size)
{
	volatile uint8_t *at = to;
	const uint8_t *bytes = from;

	if ((uintptr_t)to - (uintptr_t)from >= size)
		return memcpy(to, from, size);
	while (size--)
		at[size] = bytes[size];
	return to;
}

SF_HIDDEN int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *x = a, *y = b;

	for (size_t i = 0; i < size; i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}
