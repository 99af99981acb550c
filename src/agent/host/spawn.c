/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the agent's own threads, with all signals blocked and small stacks, and knows which there are and what rights they have.
 * Rights of threads are shown by /proc/self/task/TID/status and capget(2).
 */
#include "agent/host/spawn.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/libc/own_proc.h"
#include "agent/libc/syscall_filter.h"
#include "frozen/child.h"
#include "frozen/raw.h"

/* Reading maps takes lines and paths of 4 KiB each, notes of 64 KiB; libc adds its static TLS. */
#define STACK_SIZE (512 << 10)
#define STATUS_SIZE 4096

/* --- rights --- */

/* The lines of a status that tell of rights (proc_pid_status(5)): from the first word up to the second. */
static const struct {
	const char *from, *to;
} parts[] = {
	{ "\nUid:", "\nFDSize:" },
	{ "\nGroups:", "\nNStgid:" },
	{ "\nCapInh:", "\nCpus_allowed:" },
};

static bool find(const char *status, unsigned part, const char **ret, size_t *size_ret)
{
	const char *from = strstr(status, parts[part].from);
	const char *to = from ? strstr(from, parts[part].to) : NULL;

	*ret = from;
	*size_ret = to ? (size_t)(to - from) : 0;
	return to != NULL;
}

/* Whether both threads have the same users, groups, capabilities and filters; false also when /proc does not tell. */
static bool rights_are_equal(int32_t one, int32_t other)
{
	char status[2][STATUS_SIZE];
	const char *text[2];
	size_t size[2];

	if (!sf_own_read(one, "status", status[0], STATUS_SIZE) ||
	    !sf_own_read(other, "status", status[1], STATUS_SIZE))
		return false;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!find(status[0], i, &text[0], &size[0]) || !find(status[1], i, &text[1], &size[1]) ||
		    size[0] != size[1] || memcmp(text[0], text[1], size[0]) != 0)
			return false;
	}
	return true;
}

/* Whether the calling thread has securebits (capabilities(7)), KEEPCAPS among them: others' cannot be read. */
static bool rights_are_special(void)
{
	return sf_raw6(SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0, 0) != 0;
}

struct sets {
	struct __user_cap_data_struct of[_LINUX_CAPABILITY_U32S_3];
};

static bool get(int32_t tid, struct sets *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = tid };

	return sf_raw2(SYS_capget, &header, ret->of) == 0;
}

/* The calling thread gives up those capabilities that thread `tid` of this process does not have. */
static void follow(int32_t tid)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct sets own = { 0 }, theirs = { 0 }, both; /* valgrind 3.19 takes capget(2) to fill in the first half only */

	if (!get(0, &own) || !get(tid, &theirs))
		return;
	both = own;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		both.of[i].permitted &= theirs.of[i].permitted;
		both.of[i].effective &= theirs.of[i].effective;
		both.of[i].inheritable &= theirs.of[i].inheritable;
	}
	if (memcmp(&both, &own, sizeof(own)) != 0)
		sf_raw2(SYS_capset, &header, both.of);
}

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

	if (atomic_load(&special) || rights_are_special())
		return false;
	for (unsigned i = 0; i < MAX_SPAWNED; i++) {
		int32_t tid = atomic_load(&spawned[i]);

		if (tid && !rights_are_equal(own, tid))
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
		follow((int32_t)getpid());
}

SF_CHILD_CODE void sf_spawned_forked(void)
{
	for (unsigned i = 0; i < MAX_SPAWNED; i++)
		atomic_store(&spawned[i], 0);
}

/* --- making one --- */

struct start {
	void *(*run)(void *arg);
	void *arg;
	const char *name;
	_Atomic int32_t tid;
};

/*
 * ThreadSanitizer's run-time library; NULL where it is not in the process. It sees what the agent's threads do by functions of
 * libc, and not the atomic operations by which they wait for each other: it would report data races, and change the status of the
 * program's exit. An agent that was compiled with it is looked at.
 */
extern void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

static bool is_looked_at(void)
{
#ifdef __SANITIZE_THREAD__
	return true;
#else
	return !AnnotateIgnoreReadsBegin || !AnnotateIgnoreReadsEnd || !AnnotateIgnoreWritesBegin || !AnnotateIgnoreWritesEnd;
#endif
}

static void *run_unseen(void *(*run)(void *arg), void *arg)
{
	void *result;

	if (is_looked_at())
		return run(arg);
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	result = run(arg);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
	return result;
}

/*
 * `start` is on the stack of the one who waits: not touched behind the last store. The thread names itself: to name another one is
 * to open its file in /proc. Who reaps the process may then spin in the kernel, for milliseconds, while the last thread that ended
 * is taking what the kernel keeps of that file away.
 */
static void *begin(void *arg)
{
	struct start *start = arg;
	void *(*run)(void *) = start->run;
	void *run_arg = start->arg;
	int32_t tid = (int32_t)gettid();
	void *result;

	replace(0, tid);
	pthread_setname_np(pthread_self(), start->name);
	atomic_store(&start->tid, tid);
	sf_raw_futex_wake(&start->tid, 1); /* an address only */
	result = run_unseen(run, run_arg);
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
	struct start start = { .run = run, .arg = arg, .name = name };
	sigset_t all, before;
	int error;

	atomic_store(&special, rights_are_special());
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
	return true;
}
