/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three threads that work in turns, one after the other, as those of a server that serves requests: each turn is done_first() for a
 * third of its CPU time, and then done_last(). Says what each of the two used. Turns are of random lengths, so that they are in
 * step with no tick of the kernel.
 *
 * turns SECONDS MS      MS: CPU time of a turn on average, of half to one and a half of this
 */
#include <pthread.h>

#include "in_program.h"

#define N 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int64_t turn_ns, used_first_ns, used_last_ns;
static uint64_t state = 1;
static int of;                    /* whose turn it is; N: nobody's */

static NOINLINE void done_first(int64_t ns)
{
	burn_ns(ns / 3);
	NO_TAIL_CALL();
}

static NOINLINE void done_last(int64_t ns)
{
	KEEP(1); /* else the compiler finds two functions with the same body, and keeps one */
	burn_ns(ns * 2 / 3);
	NO_TAIL_CALL();
}

static NOINLINE void take_turn(void)
{
	const int64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int64_t ns, between_ns;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	ns = turn_ns / 2 + (int64_t)((state >> 33) % (uint64_t)turn_ns);
	done_first(ns);
	between_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	done_last(ns);
	used_first_ns += between_ns - began_ns;
	used_last_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - between_ns;
}

static void *work(void *arg)
{
	const int own = (int)(intptr_t)arg;

	for (;;) {
		pthread_mutex_lock(&mutex);
		while (of != own && of != N)
			pthread_cond_wait(&changed, &mutex);
		pthread_mutex_unlock(&mutex);
		if (of == N)
			return NULL;
		take_turn();
		pthread_mutex_lock(&mutex);
		if (of == own)
			of = (own + 1) % N;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[N];
	const double seconds = argument(argc, argv, 1, 2);

	turn_ns = (int64_t)(argument(argc, argv, 2, 1.5) * 1e6);
	bounded(60 + 10 * seconds);
	for (int i = 0; i < N; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	ready();
	sleep_ns((int64_t)(seconds * NS_PER_S));
	pthread_mutex_lock(&mutex);
	of = N;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	printf("first %.6f\nlast %.6f\n", used_first_ns / 1e9, used_last_ns / 1e9);
	tell_cpu();
	return 0;
}
