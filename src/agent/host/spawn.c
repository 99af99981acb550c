/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the agent's own threads, with all signals blocked and small stacks. Ordinary code; never
 * in a signal handler.
 */
#include "agent/host/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "agent/libc/rights.h"
#include "agent/libc/syscall_filter.h"
#include "frozen/child.h"
#include "frozen/raw.h"

/* Reading maps takes lines and paths of 4 KiB each, notes of 64 KiB; libc adds its static TLS. */
#define STACK_SIZE (512 << 10)

struct start {
	void *(*run)(void *arg);
	void *arg;
	_Atomic int32_t tid;
};

/* --- who there is --- */

#define MAX_SPAWNED 5 /* sampler, service thread, listener, stand-in; and one that comes before another one has ended */

SF_CHILD_DATA static _Atomic int32_t spawned[MAX_SPAWNED]; /* 0: none */
static _Atomic bool special;                 /* one of them was made by a thread with securebits */

static void replace(int32_t from, int32_t to)
{
	for (unsigned i = 0; i < MAX_SPAWNED; i++) {
		int32_t found = from;

		if (atomic_compare_exchange_strong(&spawned[i], &found, to))
			return;
	}
}

bool sf_spawned_have_own_rights(void)
{
	const int32_t own = (int32_t)sf_raw0(SYS_gettid);

	if (atomic_load(&special) || sf_rights_are_special())
		return false;
	for (unsigned i = 0; i < MAX_SPAWNED; i++) {
		int32_t tid = atomic_load(&spawned[i]);

		if (tid && !sf_rights_are_equal(own, tid))
			return false;
	}
	return true;
}

bool sf_spawned_includes(int32_t tid)
{
	for (unsigned i = 0; i < MAX_SPAWNED; i++) {
		if (atomic_load(&spawned[i]) == tid)
			return true;
	}
	return false;
}

unsigned sf_spawned_count(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAX_SPAWNED; i++)
		n += atomic_load(&spawned[i]) != 0;
	return n;
}

void sf_spawned_follow(void)
{
	if (sf_filter_allows(SF_FILTER_RIGHTS, NULL))
		sf_rights_follow((int32_t)getpid());
}

SF_CHILD_CODE void sf_spawned_forked(void)
{
	for (unsigned i = 0; i < MAX_SPAWNED; i++)
		atomic_store(&spawned[i], 0);
}

/* --- making one --- */

/* `start` is on the stack of the one who waits: not touched behind the last store. */
static void *begin(void *arg)
{
	struct start *start = arg;
	void *(*run)(void *) = start->run;
	void *run_arg = start->arg;
	int32_t tid = (int32_t)gettid();
	void *result;

	replace(0, tid);
	atomic_store(&start->tid, tid);
	sf_raw_futex_wake(&start->tid, 1); /* an address only */
	result = run(run_arg);
	replace(tid, 0);
	return result;
}

/* With a larger stack where the program's thread-local variables leave no room in a small one. */
static int create(pthread_t *ret, struct start *start)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	error = pthread_create(ret, &attributes, begin, start);
	if (error == EINVAL && pthread_attr_setstacksize(&attributes, 4 * STACK_SIZE) == 0)
		error = pthread_create(ret, &attributes, begin, start);
	pthread_attr_destroy(&attributes);
	return error;
}

bool sf_spawn(pthread_t *ret, int32_t *tid_ret, void *(*run)(void *arg), void *arg,
	      const char *name, struct sf_error *err)
{
	struct start start = { .run = run, .arg = arg };
	sigset_t all, before;
	int error;

	atomic_store(&special, sf_rights_are_special());
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = create(ret, &start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		errno = error;
		return sf_fail_os(err, "cannot make a thread");
	}
	while (!atomic_load(&start.tid))
		sf_raw_futex_wait(&start.tid, 0, 0);
	*tid_ret = atomic_load(&start.tid);
	pthread_setname_np(*ret, name);
	return true;
}
