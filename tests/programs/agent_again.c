/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked with the agent and makes two profiles of itself, of different work. Its threads live through
 * both. It judges itself: status 0 is a pass.
 *
 * agent_again FOLDER WALK     writes FOLDER/first.sfs and FOLDER/second.sfs
 * agent_again FOLDER labels   sets one label more than there may be; works under the first, the last, and the one beyond.
 *                             In the second profile under the last one, and under the second
 */
#include <pthread.h>
#include <semaphore.h>

#include "program.h"
#include "stillframe.h"

#define MAX_LABELS 65535

static int failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: %s; %s\n", __LINE__, #condition, sf_profile_error());     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

/* Three functions, so that each time has its own. */
#define WORK(name)                                                                                 \
	static NOINLINE void name(double seconds)                                                  \
	{                                                                                          \
		const int64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (int64_t)(seconds * NS_PER_S); \
                                                                                                   \
		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)                                 \
			KEEP(__LINE__);                                                            \
		NO_TAIL_CALL();                                                                    \
	}
WORK(work_first)
WORK(work_between)
WORK(work_second)

static void (*const all_work[])(double seconds) = { work_first, work_between, work_second };
static pthread_barrier_t barrier;
static sem_t never;

static NOINLINE void wait_for_ever(void)
{
	while (sem_wait(&never) != 0)
		;
	NO_TAIL_CALL();
}

static void *sleep_through(void *arg)
{
	sf_thread_name("the sleeper");
	wait_for_ever();
	return arg;
}

/* In step with main: what is done before and after a profile is not in it. */
static void *work_along(void *arg)
{
	sf_thread_name("the worker");
	for (int i = 0; i < 3; i++) {
		pthread_barrier_wait(&barrier);
		all_work[i](0.2);
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static void start(const char *folder, const char *name, const char *more)
{
	char options[700];

	snprintf(options, sizeof(options), "out=%s/%s.sfs,rate=499hz,%s", folder, name, more);
	CHECK(sf_profile_start(options) == 0);
}

static void work(int i)
{
	pthread_barrier_wait(&barrier);
	all_work[i](0.2);
	pthread_barrier_wait(&barrier);
}

static void twice(const char *folder, const char *walk)
{
	static const char *const names[] = { "first", NULL, "second" };
	pthread_t worker, sleeper;
	char more[64];

	snprintf(more, sizeof(more), "walk=%s", walk);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&never, 0, 0);
	pthread_create(&sleeper, NULL, sleep_through, NULL);
	pthread_create(&worker, NULL, work_along, NULL);
	for (int i = 0; i < 3; i++) {
		if (names[i])
			start(folder, names[i], more);
		CHECK(sf_label_set("profile", names[i] ? names[i] : "none") == 0);
		work(i);
		if (names[i])
			CHECK(sf_profile_stop() == 0);
	}
	pthread_join(worker, NULL);
	sem_post(&never);
	pthread_join(sleeper, NULL);
}

/* As a server does for its requests, whatever sf_label_set() returns. */
static int label(unsigned number)
{
	char value[201];

	snprintf(value, sizeof(value), "number %u %0180d", number, 0);
	return sf_label_set("request", value);
}

static void label_all(const char *folder)
{
	int error;

	start(folder, "first", "walk=sampler");
	CHECK(label(1) == 0);
	work_first(0.2);
	for (unsigned i = 2; i <= MAX_LABELS; i++) {
		while ((error = label(i)) == EAGAIN)
			sleep_ns(1000000);
		CHECK(error == 0);
	}
	work_between(0.2);
	CHECK(label(MAX_LABELS + 1) == ENOSPC && strstr(sf_profile_error(), "65535"));
	work_second(0.2);
	CHECK(sf_profile_stop() == 0);
	CHECK(label(MAX_LABELS) == 0);
	start(folder, "second", "walk=handler");
	work_first(0.2);
	CHECK(label(2) == 0);
	work_second(0.2);
	CHECK(sf_profile_stop() == 0);
}

int main(int argc, char **argv)
{
	bounded(60);
	if (argc < 3)
		return 2;
	if (strcmp(argv[2], "labels") == 0)
		label_all(argv[1]);
	else
		twice(argv[1], argv[2]);
	return failures != 0;
}
