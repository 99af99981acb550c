/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that fork() takes: the header says why they are not simply taken. */
#include "agent/libc/fork_lock.h"

#include <stdint.h>

#include "frozen/child.h"
#include "os/clock.h"

#define WAIT_NS 5000000000u
#define LOOK_NS 1000000u

SF_CHILD_DATA pthread_mutex_t sf_fork_mutexes[SF_N_FORK_LOCKS] = {
	[SF_FORK_LISTENER] = PTHREAD_MUTEX_INITIALIZER,
	[SF_FORK_PROFILE] = PTHREAD_MUTEX_INITIALIZER,
	[SF_FORK_RUNTIME] = PTHREAD_MUTEX_INITIALIZER,
	[SF_FORK_LABELS] = PTHREAD_MUTEX_INITIALIZER,
	[SF_FORK_IMAGES] = PTHREAD_MUTEX_INITIALIZER,
};

/* For each lock, which of this thread's nested forks hold it: the innermost fork in the lowest bit. */
static _Thread_local uint64_t held[SF_N_FORK_LOCKS];

static bool lock_within(pthread_mutex_t *mutex, uint64_t wait_ns)
{
	uint64_t now_ns = sf_now_ns(), until_ns = now_ns + wait_ns;

	while (pthread_mutex_trylock(mutex) != 0) {
		if (now_ns >= until_ns)
			return false;
		sf_sleep_until(now_ns + LOOK_NS);
		now_ns = sf_now_ns();
	}
	return true;
}

bool sf_fork_lock_in_time(enum sf_fork_lock which)
{
	return lock_within(&sf_fork_mutexes[which], WAIT_NS);
}

void sf_fork_lock_all(void)
{
	for (unsigned i = 0; i < SF_N_FORK_LOCKS; i++)
		held[i] = held[i] << 1 | lock_within(&sf_fork_mutexes[i], i == SF_FORK_IMAGES ? 0 : WAIT_NS);
}

SF_CHILD_CODE bool sf_fork_has(enum sf_fork_lock which)
{
	return held[which] & 1;
}

void sf_fork_unlock_all(void)
{
	for (unsigned i = SF_N_FORK_LOCKS; i-- > 0; held[i] >>= 1) {
		if (held[i] & 1)
			pthread_mutex_unlock(&sf_fork_mutexes[i]);
	}
}

SF_CHILD_CODE void sf_fork_renew_all(void)
{
	for (unsigned i = 0; i < SF_N_FORK_LOCKS; i++) {
		sf_fork_mutexes[i] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		held[i] = 0;
	}
}

void sf_lock_from_handlers(pthread_mutex_t *mutex, sigset_t *before_ret)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before_ret);
	pthread_mutex_lock(mutex);
}

void sf_unlock_to_handlers(pthread_mutex_t *mutex, const sigset_t *before)
{
	pthread_mutex_unlock(mutex);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}
