/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libc for the shared library's own use (hidden), where a program may have others in front of libc's. Signal-safe.
 *
 * - memcpy and related functions: a sanitizer's versions record every access, also in a signal handler and in held threads. They do
 *   not see our atomic words, and would report correct accesses as races.
 * - clock_gettime: the program's may answer other times (libfaketime), and libc's own reads the time stamp of the CPU, which a
 *   thread may have forbidden itself (vdso.h).
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/libc/hidden.h"
#include "frozen/raw.h"

#define NS_PER_S UINT64_C(1000000000)

SF_HIDDEN int clock_gettime(clockid_t clock, struct timespec *ret)
{
	long result = 0;

	if (clock == CLOCK_MONOTONIC) {
		const uint64_t now_ns = sf_raw_now_ns();

		*ret = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_S), .tv_nsec = (long)(now_ns % NS_PER_S) };
	} else {
		result = sf_raw2(SYS_clock_gettime, clock, ret);
	}
	if (result < 0)
		errno = (int)-result;
	return result < 0 ? -1 : 0;
}

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
