/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own threads: made with pthread_create, so that libc's setuid() and its kin include
 * them, with every signal blocked (the program's signals are for its own threads), and small
 * stacks.
 */
#ifndef SF_AGENT_HOST_SPAWN_H
#define SF_AGENT_HOST_SPAWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Joinable; it runs, and its id is known, when this returns. `name`: at most 15 bytes. */
bool sf_spawn(pthread_t *ret, int32_t *tid_ret, void *(*run)(void *arg), void *arg,
	      const char *name, struct sf_error *err);

/*
 * Whether every thread that sf_spawn made and that has not ended has the rights of the calling thread, as far as is known. A system
 * call that changes users, groups or capabilities changes one thread. libc's setuid() and its kin make the call in every thread,
 * and end the process if the results differ, as they do where threads have different capabilities, securebits or filters before
 * (nptl/nptl_setxid.c in glibc). Signal-safe.
 */
bool sf_spawned_have_own_rights(void);
/* Whether this is one of them; how many there are. Signal-safe. */
bool sf_spawned_includes(int32_t tid);
unsigned sf_spawned_count(void);
/* By such a thread, now and then: it gives up the capabilities that the program's first thread has given up. */
void sf_spawned_follow(void);
/* In a forked child, which has none of them. */
void sf_spawned_forked(void);

#endif
