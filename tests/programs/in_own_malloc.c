/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has an allocator of its own, with a lock that each fork takes, as jemalloc, tcmalloc and PartitionAlloc do; forks by each of
 * libc's functions, and says for each whether the child lives. A child that hangs is ended.
 *
 * in_own_malloc
 */
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "in_program.h"

#define CHILD_NS 100000000 /* of CPU time */
#define HANGS_MS 10000
#define EXPORTED __attribute__((visibility("default"))) /* to libraries */

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define LOCKED(result)                                                                                               \
	({                                                                                                           \
		pthread_mutex_lock(&lock);                                                                           \
		__auto_type ret_ = (result);                                                                         \
		pthread_mutex_unlock(&lock);                                                                         \
		ret_;                                                                                                \
	})

EXPORTED void *malloc(size_t size)
{
	return LOCKED(__libc_malloc(size));
}

EXPORTED void *calloc(size_t n, size_t size)
{
	return LOCKED(__libc_calloc(n, size));
}

EXPORTED void *realloc(void *memory, size_t size)
{
	return LOCKED(__libc_realloc(memory, size));
}

EXPORTED void free(void *memory)
{
	LOCKED((__libc_free(memory), 0));
}

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void release_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static void work(void)
{
	const int64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + CHILD_NS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		free(malloc(100));
	exit(0);
}

static void by_fork(void)
{
	if (fork() == 0)
		work();
}

static void by_forkpty(void)
{
	int terminal;

	if (forkpty(&terminal, NULL, NULL, NULL) == 0)
		work();
}

/* daemon() ends its caller: that is another child. */
static void by_daemon(void)
{
	const pid_t pid = fork();

	if (pid == 0 && daemon(1, 1) == 0)
		work();
	waitpid(pid, NULL, 0);
}

/* Whether all that `fn` starts ends: it has the only writing ends of a pipe. */
static bool ends(void (*fn)(void))
{
	struct pollfd end;
	int pipe_fds[2];

	if (pipe(pipe_fds) != 0)
		return false;
	fn();
	close(pipe_fds[1]);
	end = (struct pollfd){ .fd = pipe_fds[0], .events = POLLIN };
	return poll(&end, 1, HANGS_MS) == 1;
}

int main(void)
{
	static const struct { const char *name; void (*fn)(void); } ways[] = {
		{ "fork", by_fork }, { "daemon", by_daemon }, { "forkpty", by_forkpty },
	};

	setpgid(0, 0);
	pthread_atfork(take_lock, release_lock, release_lock);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		const bool ended = ends(ways[i].fn);

		printf("%s %s\n", ways[i].name, ended ? "ends" : "hangs");
		fflush(stdout);
		if (!ended)
			kill(0, SIGKILL);
	}
	return 0;
}
