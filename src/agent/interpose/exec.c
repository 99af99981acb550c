/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interposers for the exec functions. The new program starts with default signal actions. So before the
 * exec the calling thread's clock is removed, its pending signals of ours are taken, and the stream's
 * file gets all samples so far. A child that is not sampled executes its program without the agent (program.h).
 * That is also why posix_spawn() is interposed. system() and popen() execute within libc, where no interposer is called.
 *
 * A child of vfork() runs in its parent's memory: it must not touch anything of ours (exec_preparation.h).
 * Signal-safe but for execvp and execvpe, as the functions they stand for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/interpose/interpose.h"
#include "agent/interpose/program.h"
#include "agent/interpose/sampling_signal.h"
#include "agent/libc/own_proc.h"
#include "frozen/raw.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"

typedef int execve_fn(const char *, char *const *, char *const *);
typedef int execvpe_fn(const char *, char *const *, char *const *);
typedef int fexecve_fn(int, char *const *, char *const *);
typedef int execveat_fn(int, const char *, char *const *, char *const *, int);
typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
		     char *const *);

/* Whether the action of our signal is this one, and the program ignores it. A child may have an action of its own (signal.c). */
static bool is_ignored_behind(sf_signal_fn *handler)
{
	struct sf_kernel_action own, now;

	if (!sf_agent_signal_is_ours(sf_handler.config.signal))
		return false;
	sf_chain_get(&own);
	return own.handler == SF_CHAIN_IGNORE &&
	       sf_raw4(SYS_rt_sigaction, sf_handler.config.signal, NULL, &now, sizeof(now.mask)) == 0 && now.handler == handler;
}

/* Ignored signals stay ignored in the next program (execve(2)), where our handler would become the default action. */
static void ignore(void)
{
	const struct sf_kernel_action action = { .handler = SF_CHAIN_IGNORE };

	sf_raw4(SYS_rt_sigaction, sf_handler.config.signal, &action, NULL, sizeof(action.mask));
}

static bool before(void)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	const bool prepared = hooks && hooks->before_exec();

	if (is_ignored_behind(sf_handler_enter))
		ignore();
	return prepared;
}

static const char *useless_variable(const char *file, bool in_child)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);

	return hooks ? hooks->useless_variable(file, in_child) : NULL;
}

/* After a failed exec; keeps its errno. */
static int after(bool prepared, int result, struct sf_environment_memory *memory)
{
	int error = errno;

	sf_environment_unmap(memory);
	if (is_ignored_behind(SF_CHAIN_IGNORE))
		sf_chain_check(); /* puts ours in front again */
	if (prepared)
		atomic_load(&sf_interpose_hooks)->after_exec();
	errno = error;
	return result;
}

SF_INTERPOSED int execve(const char *path, char *const argv[], char *const envp[])
{
	execve_fn *next = (execve_fn *)sf_interpose_next(SF_NEXT_execve);
	bool prepared = before();
	struct sf_environment_memory memory = { 0 };
	long error;

	SF_ENVIRONMENT_WITHOUT(envp, useless_variable(path, false), &memory);
	if (next)
		return after(prepared, next(path, argv, envp), &memory);
	error = sf_raw3(SYS_execve, path, argv, envp);
	errno = (int)-error;
	return after(prepared, -1, &memory);
}

SF_INTERPOSED int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

SF_INTERPOSED int execvpe(const char *file, char *const argv[], char *const envp[])
{
	execvpe_fn *next = (execvpe_fn *)sf_interpose_find(SF_NEXT_execvpe);
	struct sf_environment_memory memory = { 0 };
	bool prepared;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	SF_ENVIRONMENT_WITHOUT(envp, useless_variable(file, false), &memory);
	prepared = before();
	return after(prepared, next(file, argv, envp), &memory);
}

SF_INTERPOSED int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

SF_INTERPOSED int fexecve(int fd, char *const argv[], char *const envp[])
{
	fexecve_fn *next = (fexecve_fn *)sf_interpose_find(SF_NEXT_fexecve);
	char path[SF_OWN_FD_PATH];
	struct sf_environment_memory memory = { 0 };
	bool prepared;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	sf_own_fd_path(fd, path);
	SF_ENVIRONMENT_WITHOUT(envp, useless_variable(path, false), &memory);
	prepared = before();
	return after(prepared, next(fd, argv, envp), &memory);
}

/* The program of an execveat(2). A name in the folder `fd` leads there by the folder's own path. */
static const char *program_at(int fd, const char *path, int flags, char ret[PATH_MAX])
{
	if (!sf_program_is_named(path) || *path == '/' || fd == AT_FDCWD)
		return path;
	sf_own_fd_path(fd, ret);
	if (*path || !(flags & AT_EMPTY_PATH)) {
		const size_t used = strlen(ret), size = strlen(path) + 1;

		if (used + 1 + size > PATH_MAX)
			return NULL; /* the kernel refuses it */
		ret[used] = '/';
		memcpy(ret + used + 1, path, size);
	}
	return ret;
}

SF_INTERPOSED int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	execveat_fn *next = (execveat_fn *)sf_interpose_find(SF_NEXT_execveat);
	char name[PATH_MAX];
	struct sf_environment_memory memory = { 0 };
	bool prepared;

	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	SF_ENVIRONMENT_WITHOUT(envp, useless_variable(program_at(fd, path, flags, name), false), &memory);
	prepared = before();
	return after(prepared, next(fd, path, argv, envp, flags), &memory);
}

long sf_interpose_exec(const struct sf_filter_call *call)
{
	const long *args = call->args;
	const bool is_at = call->number == SYS_execveat;
	char *const *envp = (char *const *)args[is_at ? 3 : 2];
	char name[PATH_MAX];
	const char *program = is_at ? program_at((int)args[0], (const char *)args[1], (int)args[4], name) : (const char *)args[0];
	struct sf_environment_memory memory = { 0 };
	bool prepared;
	long result;

	SF_ENVIRONMENT_WITHOUT(envp, useless_variable(program, false), &memory);
	prepared = before();
	result = is_at ? sf_raw6(SYS_execveat, args[0], args[1], args[2], (long)envp, args[4], 0) :
			 sf_raw3(SYS_execve, args[0], args[1], envp);
	return after(prepared, (int)sf_interpose_result(result), &memory);
}

/* How many arguments there are, with the NULL at the end; `args` is used up. */
static size_t count(const char *first, va_list args)
{
	size_t n = 1;

	for (; first; first = va_arg(args, char *))
		n++;
	return n;
}

static void collect(char **argv, const char *first, va_list args)
{
	*argv = (char *)first;
	while (*argv)
		*++argv = va_arg(args, char *);
}

/* argv[] on the stack, where libc has it too: the child of a vfork may not allocate. */
#define COLLECT(argv, first)                                                                       \
	va_list args;                                                                              \
	size_t n;                                                                                  \
	char **argv;                                                                               \
                                                                                                   \
	va_start(args, first);                                                                     \
	n = count(first, args);                                                                    \
	va_end(args);                                                                              \
	argv = __builtin_alloca(n * sizeof(*argv));                                                \
	va_start(args, first);                                                                     \
	collect(argv, first, args)

SF_INTERPOSED int execl(const char *path, const char *first, ...)
{
	COLLECT(argv, first);
	va_end(args);
	return execve(path, argv, environ);
}

SF_INTERPOSED int execlp(const char *file, const char *first, ...)
{
	COLLECT(argv, first);
	va_end(args);
	return execvpe(file, argv, environ);
}

/* Behind the NULL of its arguments comes the environment. */
SF_INTERPOSED int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	COLLECT(argv, first);

	envp = va_arg(args, char *const *);
	va_end(args);
	return execve(path, argv, envp);
}

/* --- children that libc makes --- */

#define INTERPOSE_SPAWN(name)                                                                      \
	SF_INTERPOSED int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, \
			       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) \
	{                                                                                          \
		spawn_fn *next = (spawn_fn *)sf_interpose_find(SF_NEXT_##name);                    \
		struct sf_environment_memory memory = { 0 };                                       \
		int error;                                                                         \
                                                                                                   \
		if (!next)                                                                         \
			return ENOSYS;                                                             \
		SF_ENVIRONMENT_WITHOUT(envp, useless_variable(file, true), &memory);               \
		error = next(pid, file, actions, attributes, argv, envp);                          \
		sf_environment_unmap(&memory);                                                     \
		return error;                                                                      \
	}

INTERPOSE_SPAWN(posix_spawn)
INTERPOSE_SPAWN(posix_spawnp)
