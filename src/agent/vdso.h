/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what the kernel lets a process call without entering it (frozen/raw.h). */
#ifndef SF_AGENT_VDSO_H
#define SF_AGENT_VDSO_H

/* Before handlers run. What is not found is asked of the kernel. */
void sf_agent_find_vdso(void);

#endif
