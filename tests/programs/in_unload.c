/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent's library at run time, starts it, stops it and unloads it, again and again, with other threads
 * busy. Afterwards none of its threads is left, and no signal comes. (Its handler may stay: a signal that was
 * under way must not meet the default action.)
 *
 * in_unload LIBRARY TURNS FILE [OPTIONS]
 */
#include <dirent.h>
#include <pthread.h>

#include "in_program.h"

static volatile bool done;

static NOINLINE void *spin_beside_agent(void *arg)
{
	while (!done)
		burn_ns(1000000);
	return arg;
}

static bool turn(const char *path, const char *options)
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
	unsigned turns = argument(argc, argv, 2, 20), i, left;
	char options[1024];
	pthread_t threads[2];

	if (argc < 4)
		return 2;
	bounded(300);
	snprintf(options, sizeof(options), "out=%s%s%s", argv[3], argc > 4 ? "," : "",
		 argc > 4 ? argv[4] : "");
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, spin_beside_agent, NULL);
	for (i = 0; i < turns; i++)
		if (!turn(argv[1], options))
			break;
	/* Threads that were joined may still be seen for a moment. */
	for (int wait = 0; (left = count_threads()) != 3 && wait < 200; wait++)
		sleep_ns(10000000);
	done = true;
	for (int k = 0; k < 2; k++)
		pthread_join(threads[k], NULL);
	printf("turns %u threads left %u\n", i, left);
	return i != turns || left != 3;
}
