/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that come and go: 10,000 a second, each alive for a few microseconds. Most are gone before
 * anyone can look at them; each that was due and could not be held must be a counted loss. Says
 * how many it made, and fails if one could not be made or did not do its work.
 *
 * threads_churn [SECONDS [PER_SECOND [MS]]]      MS: CPU time that each uses besides
 */
#include <pthread.h>

#include "in_program.h"

static int64_t life_ns;

static NOINLINE void *short_life(void *arg)
{
	volatile unsigned *done = arg;

	for (volatile unsigned i = 0; i < 500; i++)
		;
	if (life_ns)
		burn_ns(life_ns);
	(*done)++;
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 3);
	double per_second = argument(argc, argv, 2, 10000);
	int64_t start = now_ns(), end = start + seconds * NS_PER_S;
	unsigned made = 0, done = 0;

	life_ns = argument(argc, argv, 3, 0) * 1e6;
	bounded(30 + 10 * seconds);
	ready();
	while (now_ns() < end) {
		pthread_t thread;
		int64_t due;

		if (pthread_create(&thread, NULL, short_life, &done) != 0) {
			perror("pthread_create");
			return 1;
		}
		pthread_join(thread, NULL);
		made++;
		due = start + made * (NS_PER_S / per_second);
		if (due > now_ns() + 100000)
			sleep_ns(due - now_ns());
	}
	printf("made %u done %u in %.3f s\n", made, done, (now_ns() - start) / 1e9);
	tell_cpu();
	return made == done ? 0 : 1;
}
