/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pthread_exit() and its kin, in front of libc's: libc ends the process with its last thread, and the program's last thread
 * would not be the last one (agent/aside.h).
 *
 * pthread_create(), in front of libc's: a new thread is looked for at once. Without that the
 * sampler finds it at its next scan, and a program that makes few threads is scanned seldom.
 * Threads that are made otherwise (by a raw clone, by libc itself for a timer, or where the agent
 * came by dlopen and the program's calls go to libc's) are found then.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <threads.h>

#include "agent/interpose/interpose.h"

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

SF_INTERPOSED int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				 void *(*run)(void *), void *arg)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	create_fn *next = (create_fn *)sf_interpose_find(SF_NEXT_pthread_create);
	int error = next ? next(thread, attr, run, arg) : EAGAIN;

	if (!error && hooks)
		hooks->thread_made();
	return error;
}

void sf_interpose_thread_ends(void)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	int error = errno;

	if (hooks)
		hooks->thread_ends();
	errno = error;
}

SF_INTERPOSED void pthread_exit(void *result)
{
	void (*next)(void *) = (void (*)(void *))sf_interpose_find(SF_NEXT_pthread_exit);

	sf_interpose_thread_ends();
	next(result);
	__builtin_unreachable();
}

SF_INTERPOSED void thrd_exit(int result)
{
	void (*next)(int) = (void (*)(int))sf_interpose_find(SF_NEXT_thrd_exit);

	sf_interpose_thread_ends();
	next(result);
	__builtin_unreachable();
}
