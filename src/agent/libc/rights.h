/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights of threads. A system call that changes users, groups or capabilities changes one thread. libc's setuid() and its
 * kin make the call in every thread, and end the process if the results differ, as they do where threads have different
 * capabilities, securebits or filters before (nptl/nptl_setxid.c in glibc).
 */
#ifndef SF_AGENT_LIBC_RIGHTS_H
#define SF_AGENT_LIBC_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether both threads of this process have the same users, groups, capabilities and filters; false also when /proc
 * does not tell. Signal-safe.
 */
bool sf_rights_are_equal(int32_t one, int32_t other);

/* Whether the calling thread has securebits (capabilities(7)), KEEPCAPS among them: others' cannot be read. Signal-safe. */
bool sf_rights_are_special(void);

/* The calling thread gives up those capabilities that thread `tid` of this process does not have. */
void sf_rights_follow(int32_t tid);

#endif
