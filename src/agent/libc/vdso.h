/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the functions of the vDSO, which a process calls without entering the kernel (frozen/raw.h). */
#ifndef SF_AGENT_LIBC_VDSO_H
#define SF_AGENT_LIBC_VDSO_H

/*
 * Called when the agent is loaded, because the loader takes a lock that a forked child may wait for in
 * vain. A system call replaces each function that is not found.
 */
void sf_agent_find_vdso(void);

#endif
