/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads, nearly all asleep: a quarter each in a futex, in poll, in read and in nanosleep, and
 * one or more that spin. At the end every sleeper is woken and must say that its call
 * was never cut short. Each thread lives for SECONDS at least, however long it takes to make them all. It is ready when each
 * thread has its name, and has been asleep, or has begun to spin.
 *
 * many_threads [THREADS [SECONDS [SPINNERS]]]
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "program.h"

static int pipe_ends[2];
static volatile int over;
static double seconds;
static unsigned bad;
static volatile int *tids; /* of the threads that have their names; 0: not yet */

static NOINLINE bool sleep_in_futex(void)
{
	while (!over)
		if (syscall(SYS_futex, &over, FUTEX_WAIT, 0, NULL, NULL, 0) != 0 && errno != EAGAIN)
			return false;
	return true;
}

static NOINLINE bool sleep_in_poll(void)
{
	struct pollfd wait = { .fd = pipe_ends[0], .events = POLLIN };

	return poll(&wait, 1, -1) == 1;
}

static NOINLINE bool sleep_in_read(void)
{
	char byte;

	return read(pipe_ends[0], &byte, 1) == 0; /* the end of the file, no byte is ever written */
}

static NOINLINE bool sleep_in_nanosleep(void)
{
	int64_t ns = seconds * NS_PER_S;
	struct timespec time = { ns / NS_PER_S, ns % NS_PER_S };

	return nanosleep(&time, NULL) == 0;
}

static void *sleeper(void *arg)
{
	static bool (*const ways[4])(void) = { sleep_in_futex, sleep_in_poll, sleep_in_read,
					       sleep_in_nanosleep };
	static const char *const names[4] = { "in-futex", "in-poll", "in-read", "in-nanosleep" };
	unsigned number = (uintptr_t)arg;

	prctl(PR_SET_NAME, names[number % 4]);
	tids[number] = gettid();
	if (!ways[number % 4]()) {
		fprintf(stderr, "%s: %s\n", names[number % 4], strerror(errno));
		__atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static NOINLINE void *spinner(void *arg)
{
	prctl(PR_SET_NAME, "spinner");
	tids[(uintptr_t)arg] = gettid();
	while (!over)
		for (volatile int i = 0; i < 10000; i++)
			;
	return arg;
}

/* One that sleeps for a time may have ended. */
static bool is_on_its_way(int tid)
{
	const char state = letter_of(tid);

	return state == 'R' || state == 'D';
}

/* A busy machine has no turn for a new thread for a while: how long says nothing of where it is. */
static void wait_for_all(unsigned n_sleepers, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		while (!tids[i] || (i < n_sleepers && is_on_its_way(tids[i])))
			sleep_ns(1000000);
}

int main(int argc, char **argv)
{
	unsigned n = argument(argc, argv, 1, 1000), spinners = argument(argc, argv, 3, 1);
	pthread_t *threads = calloc(n + spinners, sizeof(*threads));
	pthread_attr_t attributes;

	seconds = argument(argc, argv, 2, 3);
	bounded(60 + 5 * seconds);
	tids = calloc(n + spinners, sizeof(*tids));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 16);
	if (pipe(pipe_ends) != 0)
		return 2;
	for (uintptr_t i = 0; i < n + spinners; i++)
		if (pthread_create(&threads[i], &attributes, i < n ? sleeper : spinner, (void *)i) != 0)
			return 2;
	wait_for_all(n, n + spinners);
	ready();
	sleep_ns(seconds * NS_PER_S);
	over = 1;
	syscall(SYS_futex, &over, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
	close(pipe_ends[1]);
	for (unsigned i = 0; i < n + spinners; i++)
		pthread_join(threads[i], NULL);
	printf("bad %u\n", bad);
	return bad ? 1 : 0;
}
