/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that allocate all the time, and load and unload a library. The allocator is wrapped: a call from a signal handler
 * (all signals are blocked there, and in these threads nowhere else) is what would deadlock sooner or
 * later, and ends the program at once.
 *
 * in_malloc PLUGIN [SECONDS of CPU time]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "in_program.h"

#define EXPORTED __attribute__((visibility("default"))) /* to libraries, of which the agent is one */

static __thread bool watched;
static int64_t end_ns;
static const char *plugin;

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static void check(const char *what)
{
	uint64_t mask = 0;

	if (!watched)
		return;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	if ((mask & 1u << (SIGUSR1 - 1)) && (mask & 1u << (SIGTERM - 1))) {
		static const char text[] = "in a signal handler: ";

		if (write(1, text, sizeof(text) - 1) && write(1, what, strlen(what)) && write(1, "\n", 1))
			_exit(9);
		_exit(9);
	}
}

EXPORTED void *malloc(size_t size)
{
	check("malloc");
	return __libc_malloc(size);
}

EXPORTED void free(void *memory)
{
	check("free");
	__libc_free(memory);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	check("calloc");
	return __libc_calloc(n, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
	check("realloc");
	return __libc_realloc(memory, size);
}

static NOINLINE void allocate(unsigned *seed)
{
	void *pieces[64];

	for (int i = 0; i < 64; i++)
		pieces[i] = malloc(1 + rand_r(seed) % 4000);
	for (int i = 0; i < 64; i++)
		free(pieces[i]);
}

static NOINLINE void load_library(void)
{
	void *library = dlopen(plugin, RTLD_LAZY);
	int (*work)(int) = library ? (int (*)(int))dlsym(library, "plugin_work") : NULL;

	if (!work)
		exit(2);
	KEEP(work(1000));
	dlclose(library);
}

static void *work(void *arg)
{
	bool loads = arg != NULL;
	unsigned seed = 1;
	unsigned long turns = 0;

	watched = true;
	for (; clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns; turns++) {
		if (loads)
			load_library();
		else
			allocate(&seed);
	}
	watched = false;
	return (void *)turns;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 2, 3);
	pthread_t threads[4];
	void *turns;

	if (argc < 2)
		return 2;
	plugin = argv[1];
	bounded(60 + 10 * seconds);
	end_ns = seconds * NS_PER_S;
	ready();
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, i % 2 ? (void *)1 : NULL) != 0)
			return 2;
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &turns);
		printf("turns %lu\n", (unsigned long)turns);
	}
	return 0;
}
