/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent's library at run time, starts it, stops it and unloads it, again and again, with other threads
 * busy. Afterwards none of its threads is left, and no signal does any harm: one of the threads blocks SIGPROF most of the
 * time, so that ticks come when the profile that they were for is over, and its library unloaded. They must not meet the
 * default action, nor code that is gone.
 *
 * in_unload LIBRARY TURNS FILE [OPTIONS [handler]]
 *
 * handler: the program has a handler of its own for SIGPROF, which must be called for its own signals, and for no tick.
 */
#include <dirent.h>
#include <pthread.h>

#include "in_program.h"

static volatile bool done;
static _Atomic unsigned own, foreign;

static void on_own(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_code == SI_TKILL)
		own++;
	else
		foreign++;
}

static NOINLINE void *spin_beside_agent(void *arg)
{
	while (!done)
		burn_ns(1000000);
	return arg;
}

/* Ticks pend for up to a few milliseconds. */
static NOINLINE void *spin_deaf_beside_agent(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	while (!done) {
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		burn_ns(7000000);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	return arg;
}

static bool turn(const char *path, const char *options, bool handler)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*start)(const char *), (*end)(void);
	int error;

	if (!library) {
		printf("%s\n", dlerror());
		return false;
	}
	start = (int (*)(const char *))dlsym(library, "sf_profile_start");
	end = (int (*)(void))dlsym(library, "sf_profile_stop");
	error = start(options);
	if (error) {
		const char *(*words)(void) = (const char *(*)(void))dlsym(library, "sf_profile_error");

		printf("start: %s\n", words());
		return false;
	}
	burn_ns(20000000);
	if (end() != 0)
		return false;
	dlclose(library);
	burn_ns(2000000);
	if (handler)
		pthread_kill(pthread_self(), SIGPROF);
	return true;
}

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned n = 0;

	while (tasks && readdir(tasks))
		n++;
	closedir(tasks);
	return n - 2;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = on_own, .sa_flags = SA_SIGINFO | SA_RESTART };
	const bool handler = argument_is(argc, argv, 5, "handler");
	unsigned turns = argument(argc, argv, 2, 20), i, left;
	char options[1024];
	pthread_t threads[2];

	if (argc < 4)
		return 2;
	bounded(300);
	snprintf(options, sizeof(options), "out=%s%s%s", argv[3], argc > 4 ? "," : "",
		 argc > 4 ? argv[4] : "");
	if (handler)
		sigaction(SIGPROF, &action, NULL);
	pthread_create(&threads[0], NULL, spin_beside_agent, NULL);
	pthread_create(&threads[1], NULL, spin_deaf_beside_agent, NULL);
	for (i = 0; i < turns; i++)
		if (!turn(argv[1], options, handler))
			break;
	/* Threads that were joined may still be seen for a moment. */
	for (int wait = 0; (left = count_threads()) != 3 && wait < 2000; wait++)
		sleep_ns(10000000);
	done = true;
	for (int k = 0; k < 2; k++)
		pthread_join(threads[k], NULL);
	printf("turns %u threads left %u own %u foreign %u\n", i, left, own, foreign);
	return i != turns || left != 3 || own != (handler ? turns : 0) || foreign;
}
