/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that block every signal: one spins, one sleeps. An engine that relies on a signal is deaf
 * here; ptrace is not. Nothing can end this program but its own clock (and SIGKILL).
 *
 * blocked_masks [SECONDS]
 */
#include <pthread.h>

#include "program.h"

static int64_t start;
static double seconds;

static NOINLINE void deaf_spin(void)
{
	while (lasts(start, seconds))
		;
}

static NOINLINE void *deaf_sleep(void *arg)
{
	while (lasts(start, seconds))
		sleep_ns(NS_PER_S / 4);
	return arg;
}

int main(int argc, char **argv)
{
	sigset_t all, pending;
	pthread_t sleeper;
	int n = 0;

	seconds = argument(argc, argv, 1, 3);
	start = now_ns();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (pthread_create(&sleeper, NULL, deaf_sleep, NULL) != 0)
		return 2;
	ready();
	deaf_spin();
	pthread_join(sleeper, NULL);
	/* Signals that others sent meanwhile are still pending. */
	sigpending(&pending);
	for (int signal = 1; signal < NSIG; signal++)
		n += sigismember(&pending, signal) == 1;
	printf("signals pending %d\n", n);
	return n ? 1 : 0;
}
