/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_gettime, for the shared library's own use (hidden). Signal-safe. A program may have one in front of libc's that answers
 * other times (libfaketime), and libc's own reads the time stamp of the CPU, which a thread may have forbidden itself (vdso.h).
 */
#include <errno.h>
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
