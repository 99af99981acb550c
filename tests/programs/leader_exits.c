/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first thread ends and the process lives on: the leader is a zombie that can be neither held nor
 * read, and whoever opens /proc/PID/... instead of /proc/PID/task/TID/... finds nothing.
 *
 * leader_exits [SECONDS]
 */
#include <pthread.h>

#include "program.h"

static double seconds;

static NOINLINE void spin_without_leader(void)
{
	int64_t end = now_ns() + seconds * NS_PER_S;

	while (now_ns() < end)
		;
}

static void *survivor(void *arg)
{
	(void)arg;
	sleep_ns(50000000);
	ready();
	spin_without_leader();
	printf("done\n");
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	seconds = argument(argc, argv, 1, 3);
	bounded(30 + 10 * seconds);
	if (pthread_create(&thread, NULL, survivor, NULL) != 0)
		return 2;
	pthread_exit(NULL);
}
