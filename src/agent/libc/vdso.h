/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions of the vDSO, which a process calls without entering the kernel (frozen/raw.h). */
#ifndef SF_AGENT_LIBC_VDSO_H
#define SF_AGENT_LIBC_VDSO_H

#include <stdbool.h>

/*
 * Must be called before handlers run. A system call replaces each function that is not found. False: there is no vDSO. Then
 * another program may stand between this one and the kernel, as valgrind does.
 */
bool sf_agent_find_vdso(void);

/*
 * From now on the clock is read by system calls, for good: a thread is about to forbid itself the time stamp of the CPU
 * (PR_SET_TSC of prctl(2)), which the vDSO's clock reads. Such a read would be a SIGSEGV, and in a handler the program's end.
 * Signal-safe.
 */
void sf_agent_forbid_vdso_clock(void);

#endif
