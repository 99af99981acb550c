/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that relies on the number of its next descriptor: the lowest that is free (open(2)), as programs do
 * that close 0 and open their input. Threads come and go, run and sleep meanwhile.
 *
 * in_lowest CPU-SECONDS      status 0: it always was that number
 */
#include <fcntl.h>
#include <pthread.h>

#include "in_program.h"

static _Atomic bool over;

static void *run_and_sleep(void *arg)
{
	while (!over) {
		burn_ns(2000000);
		usleep(1000);
	}
	return arg;
}

static void *live_shortly(void *arg)
{
	burn_ns(3000000);
	return arg;
}

static void *start_others(void *arg)
{
	pthread_t thread;

	while (!over) {
		if (pthread_create(&thread, NULL, live_shortly, NULL) != 0)
			return NULL;
		pthread_join(thread, NULL);
	}
	return arg;
}

int main(int argc, char **argv)
{
	double cpu_seconds = argument(argc, argv, 1, 2);
	unsigned long turns = 0, others = 0;
	pthread_t threads[2];
	int fd, expected;

	pthread_create(&threads[0], NULL, run_and_sleep, NULL);
	pthread_create(&threads[1], NULL, start_others, NULL);
	expected = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(expected);
	for (; works(cpu_seconds); turns++) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		others += fd != expected;
		close(fd);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("turns %lu other numbers %lu\n", turns, others);
	return others != 0;
}
