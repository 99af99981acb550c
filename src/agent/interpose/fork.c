/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() and its kin, in front of libc's. An allocator of the program that is not libc's takes a lock for each fork, by
 * handlers of pthread_atfork(). The program registers these after the agent has registered its own, so the agent's handlers
 * run while that lock is held: in a child, malloc() would wait for it for ever. So these functions do the agent's part before
 * all handlers and after all of them. The agent's own handlers are for forks by other functions, and for an agent that came by
 * dlopen: then the program's calls go to libc's functions, and the agent's handlers are the last ones.
 */
#include <errno.h>
#include <pthread.h>
#include <pty.h>
#include <unistd.h>

#include "agent/interpose/interpose.h"
#include "frozen/child.h"

static _Thread_local unsigned n_calls; /* of the functions below that are under way: the handlers have nothing to do */
static _Thread_local bool is_child;    /* the handler in the child has run since the call began */

static pid_t begin(const struct sf_interpose_hooks *hooks)
{
	if (hooks)
		hooks->before_fork();
	n_calls++;
	is_child = false;
	return getpid();
}

/* Both processes have the number 1 where the first process of a PID namespace has moved its children into another one. */
SF_CHILD_CODE static void end(const struct sf_interpose_hooks *hooks, pid_t parent)
{
	n_calls--;
	if (!hooks)
		return;
	if (is_child || getpid() != parent)
		hooks->after_fork_in_child();
	else
		hooks->after_fork();
}

/* A function of libc that forks: its type, its parameters, and its arguments. To add one: a line below, and one in interpose.h. */
#define INTERPOSE(type, name, parameters, ...)                                                     \
	SF_CHILD_CODE SF_INTERPOSED type name parameters                                           \
	{                                                                                          \
		type (*next) parameters = (type (*) parameters)sf_interpose_find(SF_NEXT_##name);  \
		const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);         \
		pid_t parent;                                                                      \
		type result;                                                                       \
                                                                                                   \
		if (!next) {                                                                       \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		parent = begin(hooks);                                                             \
		result = next(__VA_ARGS__);                                                        \
		end(hooks, parent);                                                                \
		return result;                                                                     \
	}

INTERPOSE(pid_t, fork, (void))
INTERPOSE(int, daemon, (int keeps_folder, int keeps_outputs), keeps_folder, keeps_outputs)
INTERPOSE(int, forkpty, (int *fd, char *name, const struct termios *modes, const struct winsize *size), fd, name, modes, size)

static void at_fork(void)
{
	if (!n_calls)
		atomic_load(&sf_interpose_hooks)->before_fork();
}

static void at_fork_in_parent(void)
{
	if (!n_calls)
		atomic_load(&sf_interpose_hooks)->after_fork();
}

SF_CHILD_CODE static void at_fork_in_child(void)
{
	is_child = true;
	if (!n_calls)
		atomic_load(&sf_interpose_hooks)->after_fork_in_child();
}

void sf_interpose_fork_init(void)
{
	pthread_atfork(at_fork, at_fork_in_parent, at_fork_in_child);
}
