/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uninterruptible sleep (state D), for as long as one likes and without a broken disk: the parent
 * of a vfork waits for its child, and no signal and no ptrace stop reaches it. A program that waits for such a thread
 * without a bound waits for ever. A second thread runs meanwhile.
 *
 * dsleep [SECONDS]      0: until its standard input ends
 */
#include <pthread.h>
#include <sys/wait.h>

#include "program.h"

static double seconds;
static volatile int deep;        /* the thread that vforks */
static volatile bool over;       /* set by the child, whose memory is ours */

static NOINLINE void in_vfork(void)
{
	pid_t child;
	char byte;

	deep = gettid();
	child = vfork();
	if (child == 0) {
		if (seconds > 0)
			sleep_ns(seconds * NS_PER_S);
		else if (read(STDIN_FILENO, &byte, 1) != 0)
			_exit(1);
		over = true;
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void *sleep_deep(void *arg)
{
	in_vfork();
	return arg;
}

static NOINLINE void spin_beside(void)
{
	for (volatile unsigned i = 0; i < 1000000; i++)
		;
}

int main(int argc, char **argv)
{
	pthread_t sleeper;

	seconds = argument(argc, argv, 1, 3);
	bounded(60 + 10 * seconds);
	if (pthread_create(&sleeper, NULL, sleep_deep, NULL) != 0)
		return 2;
	while (!deep || letter_of(deep) != 'D')
		sleep_ns(1000000);
	ready();
	while (!over)
		spin_beside();
	pthread_join(sleeper, NULL);
	printf("done\n");
	return 0;
}
