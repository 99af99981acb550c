/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libc that the agent stands in front of. These files are compiled into the shared
 * library itself, not into the archive that unit tests link, and nothing calls into them but this.
 */
#ifndef SF_AGENT_INTERPOSE_INTERPOSE_H
#define SF_AGENT_INTERPOSE_INTERPOSE_H

#include <errno.h>

#include "agent/libc/syscall_filter.h"

#define SF_INTERPOSED __attribute__((visibility("default")))

/* Looks for the functions behind ours, once, when the agent is loaded. */
void sf_interpose_signal_init(void);
void sf_interpose_exec_init(void);
void sf_interpose_wait_init(void);
void sf_interpose_syscall_init(void);
void sf_interpose_thread_init(void);

/* As libc returns what the kernel gives. */
static inline long sf_interpose_result(long result)
{
	if ((unsigned long)result < -4095ul)
		return result;
	errno = (int)-result;
	return -1;
}

/* Before a system call that the program makes by syscall(2) or prctl(2). */
void sf_interpose_before(const struct sf_filter_call *call);

#endif
