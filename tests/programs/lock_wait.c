/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that hangs: two threads that wait for each other's mutex, and a main thread that
 * joins them. The use case of `stillframe dump`.
 *
 * lock_wait
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "program.h"

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static NOINLINE void wait_for_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	NO_TAIL_CALL();
}

static NOINLINE void *take_left_then_right(void *arg)
{
	prctl(PR_SET_NAME, "left-first");
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&both);
	wait_for_lock(&right);
	return arg;
}

static NOINLINE void *take_right_then_left(void *arg)
{
	prctl(PR_SET_NAME, "right-first");
	pthread_mutex_lock(&right);
	pthread_barrier_wait(&both);
	wait_for_lock(&left);
	return arg;
}

int main(void)
{
	pthread_t first, second;

	bounded(120);
	pthread_barrier_init(&both, NULL, 3);
	if (pthread_create(&first, NULL, take_left_then_right, NULL) != 0 ||
	    pthread_create(&second, NULL, take_right_then_left, NULL) != 0)
		return 2;
	pthread_barrier_wait(&both);
	sleep_ns(100000000);
	ready();
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	return 0;
}
