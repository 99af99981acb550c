/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that fork() takes, so that a child copies no half-made state. A handler of the program may fork
 * while its own thread has a lock, and would wait for itself. So the wait has a time limit. After it
 * the child copies the state as it is, and does not use it. pthread_mutex_timedlock() is not used: it
 * waits longer when the time of day is set back meanwhile.
 */
#ifndef SF_AGENT_LIBC_FORK_LOCK_H
#define SF_AGENT_LIBC_FORK_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* In the order in which fork() takes them. To add one: a line here, and one in fork_lock.c. */
enum sf_fork_lock {
	SF_FORK_LISTENER, /* the listener's socket (control.c) */
	SF_FORK_PROFILE,  /* start and stop of a profile (agent.c) */
	SF_FORK_RUNTIME,  /* the agent as a part of a runtime (agent/runtimes.h) */
	SF_FORK_LABELS,   /* the table of labels (threads/thread_register.c) */
	SF_FORK_IMAGES,   /* the images and their tables (service/image_tables.c): fork() does not wait for this one */
	SF_N_FORK_LOCKS
};

extern pthread_mutex_t sf_fork_mutexes[SF_N_FORK_LOCKS];

/* Around fork(), by the thread that forks: at most 5 s for each lock. */
void sf_fork_lock_all(void);
/* Whether the fork that is under way, or whose child this is until sf_fork_renew_all(), has the lock. */
bool sf_fork_has(enum sf_fork_lock which);
void sf_fork_unlock_all(void);
void sf_fork_renew_all(void); /* in the child */

/* Takes one of the locks, at most for as long as fork() waits; false: another thread still has it. */
bool sf_fork_lock_in_time(enum sf_fork_lock which);

/* For a short operation: no handler runs in this thread while it has the lock. */
void sf_lock_from_handlers(pthread_mutex_t *mutex, sigset_t *before_ret);
void sf_unlock_to_handlers(pthread_mutex_t *mutex, const sigset_t *before);

#endif
