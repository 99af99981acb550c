/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one function on a new thread that is attached to the Java virtual machine, and waits for it
 * with a time-out. Ordinary code; never in a signal handler.
 */
#include "agent/java/jvm_errand.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Shared by who waits and who is waited for; the last one frees it. */
struct errand {
	struct sf_jni_vm *vm;
	sf_jvm_errand_fn *run;
	sem_t done;
	_Atomic int owners;
};

static void leave(struct errand *errand)
{
	if (atomic_fetch_sub(&errand->owners, 1) > 1)
		return;
	sem_destroy(&errand->done);
	free(errand);
}

static void *run_errand(void *arg)
{
	struct errand *errand = arg;
	struct sf_jni_attach how = { .version = SF_JNI_1_6, .name = "stillframe" };
	void *jni = NULL;

	if (sf_vm_attach_daemon(errand->vm, &jni, &how) == 0) {
		errand->run(errand->vm, jni);
		sf_vm_detach(errand->vm);
	}
	sem_post(&errand->done);
	leave(errand);
	return NULL;
}

static bool wait_for(struct errand *errand, int seconds)
{
	struct timespec until;
	int failed;

	/* The time of day may be set back meanwhile. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	do
		failed = sem_clockwait(&errand->done, CLOCK_MONOTONIC, &until);
	while (failed && errno == EINTR);
	return !failed;
}

/* Every signal is blocked in it: the program's are not for our thread. */
static bool start(struct errand *errand)
{
	sigset_t all, before;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = pthread_create(&thread, NULL, run_errand, errand) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ok)
		pthread_detach(thread);
	return ok;
}

bool sf_jvm_errand(struct sf_jni_vm *vm, sf_jvm_errand_fn *run, int seconds)
{
	struct errand *errand = calloc(1, sizeof(*errand));
	bool ok;

	if (!errand)
		return false;
	errand->vm = vm;
	errand->run = run;
	sem_init(&errand->done, 0, 0);
	atomic_store(&errand->owners, 2);
	ok = start(errand);
	if (!ok)
		leave(errand);
	ok = ok && wait_for(errand, seconds);
	leave(errand);
	return ok;
}
