/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pthread_create(), in front of libc's: a new thread is looked for at once. Without that the
 * sampler finds it at its next scan, and a program that makes few threads is scanned seldom.
 * Threads that are made otherwise (by a raw clone, by libc itself for a timer, or where the agent
 * came by dlopen and the program's calls go to libc's) are found then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agent/interpose/interpose.h"

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create_fn *_Atomic next_create;

void sf_interpose_thread_init(void)
{
	atomic_store(&next_create, (create_fn *)dlsym(RTLD_NEXT, "pthread_create"));
}

/* Also before our constructor has run: a library's that comes earlier may make threads. */
static create_fn *find_next(void)
{
	if (!atomic_load(&next_create))
		sf_interpose_thread_init();
	return atomic_load(&next_create);
}

SF_INTERPOSED int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				 void *(*run)(void *), void *arg)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	create_fn *next = find_next();
	int error = next ? next(thread, attr, run, arg) : EAGAIN;

	if (!error && hooks)
		hooks->thread_made();
	return error;
}
