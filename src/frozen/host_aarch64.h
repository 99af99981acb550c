/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64 as the host: what has to be written in its instructions (syscall(2), "Architecture calling conventions"). Included by
 * raw.h only.
 */
#ifndef SF_FROZEN_HOST_AARCH64_H
#define SF_FROZEN_HOST_AARCH64_H

/* Where the kernel returns to from a signal handler: by these bytes debuggers recognise a signal's trampoline. */
#define SF_HOST_SIGRETURN "mov x8, #139\n" "svc #0\n"

/* Before a function that is a signal's handler. The processor itself checks that a stack is aligned. */
#define SF_HOST_HANDLER

/* No program can forbid them. */
static inline void sf_raw_allow_odd_addresses(void)
{
}

static inline long sf_raw6(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#endif
