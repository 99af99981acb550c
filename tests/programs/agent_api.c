/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked with the agent and profiles itself, with every function of include/stillframe.h. It
 * judges itself: status 0 is a pass.
 *
 * agent_api FOLDER       writes FOLDER/first.sfs, FOLDER/copy.sfs and FOLDER/second.sfs
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#include "program.h"
#include "stillframe.h"

static int failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: %s; %s\n", __LINE__, #condition, sf_profile_error());     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static unsigned count(const char *folder)
{
	DIR *entries = opendir(folder);
	unsigned n = 0;

	while (entries && readdir(entries))
		n++;
	closedir(entries);
	return n;
}

static unsigned n_threads(void)
{
	return count("/proc/self/task") - 2;
}

/* A thread that was joined is seen until it is through its exit, for which it needs a CPU. */
static bool is_alone(void)
{
	int64_t patience = now_ns() + 20 * NS_PER_S;

	while (n_threads() != 1 && now_ns() < patience)
		sleep_ns(1000000);
	return n_threads() == 1;
}

static NOINLINE void spin_while_sampled(int64_t ns)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	NO_TAIL_CALL();
}

static NOINLINE void spin_while_paused(int64_t ns)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	KEEP(1);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	NO_TAIL_CALL();
}

static void *second_thread(void *arg)
{
	CHECK(sf_thread_register() == 0);
	CHECK(sf_thread_register() == 0); /* nested calls count as one */
	CHECK(sf_thread_name("the second") == 0);
	spin_while_sampled(200000000);
	CHECK(sf_thread_unregister() == 0);
	return arg;
}

static void run_second_thread(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, second_thread, NULL) == 0);
	pthread_join(thread, NULL);
}

static off_t size_of(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_size : -1;
}

static void before_start(void)
{
	CHECK(n_threads() == 1);
	CHECK(sf_profile_error()[0] == 0);
	CHECK(sf_profile_stop() == 0);
	CHECK(sf_profile_pause() == EINVAL && sf_profile_error()[0]);
	CHECK(sf_profile_write(NULL) == EINVAL);
	CHECK(sf_profile_start("rat=5") == EINVAL && strstr(sf_profile_error(), "'rat'"));
	CHECK(sf_profile_start("out=/nonexistent/x.sfs") == ENOENT &&
	      strstr(sf_profile_error(), "/nonexistent/x.sfs"));
	CHECK(n_threads() == 1);
}

static void sample(const char *first, const char *copy)
{
	char options[600];
	int error_before = errno = 77;

	snprintf(options, sizeof(options), "out=%s,rate=499hz", first);
	CHECK(sf_profile_start(options) == 0);
	CHECK(sf_profile_start(options) == EBUSY);
	CHECK(n_threads() == 3);
	CHECK(sf_label_set("trace", "4bf92f35") == 0);
	CHECK(errno == error_before);
	spin_while_sampled(300000000);
	CHECK(sf_label_set("trace", NULL) == 0);
	CHECK(sf_profile_pause() == 0);
	spin_while_paused(300000000);
	CHECK(sf_profile_resume() == 0);
	CHECK(sf_thread_name("the first") == 0);
	run_second_thread();
	CHECK(sf_profile_write(copy) == 0);
	CHECK(size_of(copy) > 1000 && size_of(copy) <= size_of(first));
	CHECK(sf_profile_stop() == 0);
	CHECK(is_alone());
}

/* The next profile takes up what the last one left; only registered threads are in it. */
static void sample_again(const char *second)
{
	char options[600];

	snprintf(options, sizeof(options), "out=%s,rate=499hz,only=registered,walk=handler", second);
	CHECK(sf_profile_start(options) == 0);
	spin_while_sampled(200000000);
	for (int i = 0; i < 5; i++)
		run_second_thread();
	CHECK(sf_profile_stop() == 0);
}

int main(int argc, char **argv)
{
	char first[512], copy[512], second[512];
	unsigned n_open;

	bounded(60);
	if (argc < 2)
		return 2;
	snprintf(first, sizeof(first), "%s/first.sfs", argv[1]);
	snprintf(copy, sizeof(copy), "%s/copy.sfs", argv[1]);
	snprintf(second, sizeof(second), "%s/second.sfs", argv[1]);
	before_start();
	n_open = count("/proc/self/fd");
	sample(first, copy);
	sample_again(second);
	CHECK(count("/proc/self/fd") == n_open);
	return failures != 0;
}
