/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an environment that is larger than the stack of the thread that starts others with it. They say whether they
 * have an agent. It works before and after.
 *
 * in_cramped NUMBER [SECONDS]: the number says nothing
 */
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "in_spins.h"

#define N_WORDS 6000
#define STACK (32u << 10)

extern char **environ;

static char *const words[] = { "sh", "-c", "echo agent ${LD_PRELOAD:+there}", NULL };

static void wait_for(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	printf("status %x\n", status);
	fflush(stdout);
}

static void *start_some(void *arg)
{
	pid_t child;

	if (posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0)
		wait_for(child);
	child = vfork();
	if (child == 0) {
		execve("/nowhere/sh", words, environ);
		execve("/bin/sh", words, environ);
		_exit(1);
	}
	wait_for(child);
	return arg;
}

static void in_thread(size_t stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, stack);
	pthread_create(&thread, &attributes, start_some, NULL);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;
	char name[16];

	bounded(60);
	for (int i = 0; i < N_WORDS; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		setenv(name, "x", 1);
	}
	spin_before(ns);
	fflush(stdout);
	in_thread(STACK);
	in_thread(STACK * 64);
	start_some(NULL);
	spin_after(ns);
	return 0;
}
