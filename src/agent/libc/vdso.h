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

#endif
