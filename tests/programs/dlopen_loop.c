/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and unloads a library all the time, so that code appears and is gone between two samples,
 * and the loader's lock is nearly always held. A second thread does the same.
 *
 * dlopen_loop PLUGIN [SECONDS]
 */
#include <dlfcn.h>
#include <pthread.h>

#include "program.h"

static const char *path;
static int64_t end;

static void *load_and_unload(void *arg)
{
	unsigned long *turns = arg;

	for (; now_ns() < end; (*turns)++) {
		void *library = dlopen(path, RTLD_LAZY);
		int (*work)(int);

		if (library == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		work = (int (*)(int))dlsym(library, "plugin_work");
		KEEP(work(20000));
		dlclose(library);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 2, 3);
	unsigned long turns[2] = { 0 };
	pthread_t second;

	if (argc < 2)
		return 2;
	path = argv[1];
	bounded(30 + 10 * seconds);
	end = now_ns() + seconds * NS_PER_S;
	ready();
	if (pthread_create(&second, NULL, load_and_unload, &turns[1]) != 0)
		return 2;
	load_and_unload(&turns[0]);
	pthread_join(second, NULL);
	printf("turns %lu %lu\n", turns[0], turns[1]);
	return 0;
}
