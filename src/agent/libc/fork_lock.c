/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that fork() takes: the header says why they are not simply taken. */
#include "agent/libc/fork_lock.h"

#include <stdbool.h>
#include <stddef.h>

#include "os/clock.h"

#define WAIT_NS 5000000000u
#define LOOK_NS 1000000u

static bool lock_in_time(pthread_mutex_t *mutex)
{
	uint64_t now_ns = sf_now_ns(), until_ns = now_ns + WAIT_NS;

	while (pthread_mutex_trylock(mutex) != 0) {
		if (now_ns >= until_ns)
			return false;
		sf_sleep_until(now_ns + LOOK_NS);
		now_ns = sf_now_ns();
	}
	return true;
}

void sf_fork_lock(pthread_mutex_t *mutex, sf_fork_turns *turns)
{
	const bool locked = lock_in_time(mutex);

	*turns = *turns << 1 | locked;
}

void sf_fork_unlock(pthread_mutex_t *mutex, sf_fork_turns *turns)
{
	const bool locked = *turns & 1;

	*turns >>= 1;
	if (locked)
		pthread_mutex_unlock(mutex);
}

void sf_fork_begin_anew(pthread_mutex_t *mutex, sf_fork_turns *turns)
{
	pthread_mutex_init(mutex, NULL);
	*turns = 0;
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
