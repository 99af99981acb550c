/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of stillframe. They take no signals: these are for the thread that started them.
 *
 * One may be stuck in a wait which no signal ends: in a read of a page of another process that is
 * never filled (os/pages.h). If such a thread holds others, they stay stopped until it ends, and only the end of the
 * process ends it.
 */
#ifndef SF_OS_OWN_THREAD_H
#define SF_OS_OWN_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* As pthread_create(). The caller joins it. False: it could not be started. */
bool sf_quiet_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#define SF_STUCK_LOOK_NS 500000000u /* between two looks */

/* The state of a thread that another thread watches. */
struct sf_stuck {
	int32_t tid;         /* of this process; 0: not known yet */
	bool holds;          /* holds other threads: its waits are not for a disk, as it reads only memory of processes */
	uint64_t switches;
	unsigned n_looks;    /* successive checks that found the thread in the same wait */
};

/*
 * Whether the thread has been in the same wait for six checks, in a call that reads memory of another process or holds
 * it. Six checks take three seconds of our own running time, so that a stop of the whole process is not taken for a wait.
 */
bool sf_stuck_look(struct sf_stuck *stuck);

/* pthread_join() of a thread that is looked at meanwhile, and that ends the process when it is stuck. It sets *tid first. */
void sf_stuck_join(pthread_t thread, const _Atomic int32_t *tid, bool holds);

/*
 * Writes the reason to the standard error, and ends this process with status 1. The kernel releases all threads that it
 * holds. A recording has what was sampled until a second before.
 */
_Noreturn void sf_stuck_give_up(void);

#endif
