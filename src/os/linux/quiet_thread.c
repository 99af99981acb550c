/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads with all signals blocked: a new thread has the mask of the one that starts it (pthread_create(3)). */
#include "os/quiet_thread.h"

#include <signal.h>

bool sf_quiet_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(ret, NULL, run, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}
