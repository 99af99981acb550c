/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks children that end at once, and says how much memory of its own each of them gets a copy of, and how many page
 * faults a child has.
 *
 * in_forks [THREADS]    idle threads beside the one that forks
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "in_program.h"

#define CHILDREN 50

static void *idle(void *arg)
{
	pause();
	return arg;
}

static void fork_some(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static long faults_of_children(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return usage.ru_minflt;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char line[256];
	FILE *status;
	long before;

	bounded(60);
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		pthread_create(&thread, NULL, idle, NULL);
	fork_some();
	before = faults_of_children();
	fork_some();
	printf("faults %.1f\n", (double)(faults_of_children() - before) / CHILDREN);
	status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			printf("anonymous %ld\n", atol(line + 8));
	}
	return 0;
}
