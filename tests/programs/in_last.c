/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that ends with its last thread, and not by exit(): its first thread ends before the others, or is the only
 * one. What it prints stands in a buffer until then, and its handlers for the end run.
 *
 * With `cancelled`, `ended` and `exits` the first thread has a pending cancellation, which it does not meet before its end:
 * exit() is no point of cancellation where nothing stands in a buffer.
 *
 * in_last alone|c11|number|others|joined|signal|cancelled|ended|exits [SECONDS]
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>

#include "in_spins.h"

static int64_t half;
static pthread_t first;

static void say_goodbye(void)
{
	printf("goodbye\n");
}

static void *work(void *arg)
{
	spin_after(half);
	printf("worker\n");
	return arg;
}

/* It waits for the first thread's end, which must not wait for this one's. */
static void *join_first(void *arg)
{
	printf("joined %d\n", pthread_join(first, NULL));
	return work(arg);
}

static void caught(int signal)
{
	static const char text[] = "caught\n";

	(void)signal;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
}

/* A signal to the process finds a thread. */
static void *be_signalled(void *arg)
{
	sleep_ns(50000000); /* the first thread has ended */
	kill(getpid(), SIGUSR1);
	return work(arg);
}

static void others(void *(*run)(void *))
{
	pthread_t thread;

	for (int i = 0; i < (run == work ? 2 : 1); i++) {
		if (pthread_create(&thread, NULL, run, NULL) != 0)
			exit(2);
	}
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "alone";

	half = argument(argc, argv, 2, 0.1) * NS_PER_S / 2;
	first = pthread_self();
	bounded(20);
	signal(SIGUSR1, caught);
	spin_before(half);
	printf("first\n");
	if (strcmp(how, "cancelled") == 0 || strcmp(how, "ended") == 0 || strcmp(how, "exits") == 0) {
		fflush(stdout);
		pthread_cancel(first);
	} else {
		atexit(say_goodbye);
	}
	if (strcmp(how, "ended") == 0)
		return 4;
	if (strcmp(how, "exits") == 0)
		exit(5);
	if (strcmp(how, "c11") == 0)
		thrd_exit(0);
	if (strcmp(how, "number") == 0)
		syscall(SYS_exit, 3);
	if (strcmp(how, "others") == 0)
		others(work);
	if (strcmp(how, "joined") == 0)
		others(join_first);
	if (strcmp(how, "signal") == 0)
		others(be_signalled);
	pthread_exit(NULL);
}
