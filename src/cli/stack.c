/* SPDX-License-Identifier: Apache-2.0 */
/* A stack for the command where the process has a small one: stack.h. */
#include "cli/stack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "cli/commands.h"

#define ENOUGH (8u << 20)

struct call {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
};

static void *run(void *arg)
{
	struct call *call = arg;

	call->status = call->run(call->argc, call->argv);
	return NULL;
}

static bool is_small(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < ENOUGH;
}

/* Threads that are made later get such a stack, too: libc takes the limit otherwise. */
static int create(pthread_t *ret, struct call *call)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	error = pthread_attr_setstacksize(&attributes, ENOUGH);
	if (!error)
		error = pthread_setattr_default_np(&attributes);
	if (!error)
		error = pthread_create(ret, &attributes, run, call);
	pthread_attr_destroy(&attributes);
	return error;
}

/* Signals are for the thread that works. */
int sf_cli_with_stack(int (*to_run)(int argc, char **argv), int argc, char **argv)
{
	struct call call = { to_run, argc, argv, SF_EXIT_FAILED };
	struct sf_error err;
	pthread_t thread;
	sigset_t all;

	if (!is_small())
		return to_run(argc, argv);
	errno = create(&thread, &call);
	if (errno) {
		sf_fail_os(&err, "the limit for stacks (ulimit -s) is too small, and a thread with a larger one cannot be made");
		return sf_cli_fail(SF_EXIT_FAILED, &err);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_join(thread, NULL);
	return call.status;
}
