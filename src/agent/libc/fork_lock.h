/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that fork() takes, so that a child copies no half-made state. A handler of the program may fork
 * while its own thread has the lock, and would wait for itself. So the wait has a time limit. After it
 * the child copies the state as it is, and does not use it. pthread_mutex_timedlock() is not used: it
 * waits longer when the time of day is set back meanwhile.
 */
#ifndef SF_AGENT_LIBC_FORK_LOCK_H
#define SF_AGENT_LIBC_FORK_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* Which of a thread's nested forks hold the lock, the innermost last; one for each thread and lock, 0 at first. */
typedef uint64_t sf_fork_turns;

/* Around fork(), at most 5 s. In the child: sf_fork_begin_anew. */
void sf_fork_lock(pthread_mutex_t *mutex, sf_fork_turns *turns);
void sf_fork_unlock(pthread_mutex_t *mutex, sf_fork_turns *turns);
void sf_fork_begin_anew(pthread_mutex_t *mutex, sf_fork_turns *turns);

/* For what is done in a moment: no handler runs in this thread meanwhile. */
void sf_lock_from_handlers(pthread_mutex_t *mutex, sigset_t *before_ret);
void sf_unlock_to_handlers(pthread_mutex_t *mutex, const sigset_t *before);

#endif
