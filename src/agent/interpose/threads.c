/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interposers for functions that make and end threads, and for those that demand something of all threads of the process, of which
 * the program may have only one without the agent.
 *
 * Not seen: calls that the program makes with an instruction of its own, and those of a library that libc loads for itself.
 */
#include <errno.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <threads.h>
#include <unistd.h>

#include "agent/interpose/interpose.h"
#include "frozen/raw.h"

/* --- threads that are made and end --- */

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/*
 * A new thread is looked for at once. Without that the sampler finds it at its next scan, and a program that makes few threads is
 * scanned seldom. Threads that are made otherwise (by a raw clone, by libc itself for a timer, or where the agent came by dlopen
 * and the program's calls go to libc's) are found then.
 */
SF_INTERPOSED int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				 void *(*run)(void *), void *arg)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	create_fn *next = (create_fn *)sf_interpose_find(SF_NEXT_pthread_create);
	int error = next ? next(thread, attr, run, arg) : EAGAIN;

	if (!error && hooks)
		hooks->thread_made();
	return error;
}

/* libc ends the process with its last thread, and the program's last thread would not be the last one (agent/aside.h). */
void sf_interpose_thread_ends(void)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	int error = errno;

	if (hooks)
		hooks->thread_ends();
	errno = error;
}

SF_INTERPOSED void pthread_exit(void *result)
{
	void (*next)(void *) = (void (*)(void *))sf_interpose_find(SF_NEXT_pthread_exit);

	sf_interpose_thread_ends();
	next(result);
	__builtin_unreachable();
}

SF_INTERPOSED void thrd_exit(int result)
{
	void (*next)(int) = (void (*)(int))sf_interpose_find(SF_NEXT_thrd_exit);

	sf_interpose_thread_ends();
	next(result);
	__builtin_unreachable();
}

/* --- demands on all threads --- */

/*
 * The agent's threads step aside for such a call (agent/aside.h):
 *
 * - setuid() and its kin are made by libc in every thread, and libc ends the process if they do not all go the same way;
 *
 * - unshare() and setns() of some namespaces fail with EINVAL in a process of more than one thread. With others the agent's
 *   threads would stay behind in the old ones.
 */
bool sf_interpose_step_aside(enum sf_demand demand)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	bool aside;
	int error;

	if (demand == SF_DEMAND_NOTHING || !hooks)
		return false;
	error = errno;
	aside = hooks->step_aside(demand);
	errno = error;
	return aside;
}

void sf_interpose_come_back(bool is_due)
{
	int error;

	if (!is_due)
		return;
	error = errno;
	atomic_load(&sf_interpose_hooks)->come_back();
	errno = error;
}

/* An interposed function of libc: its demand, its parameters, and its arguments. */
#define INTERPOSE(name, demand, parameters, ...)                                                   \
	SF_INTERPOSED int name parameters                                                          \
	{                                                                                          \
		int (*next) parameters = (int (*) parameters)sf_interpose_find(SF_NEXT_##name);    \
		bool aside;                                                                        \
		int result;                                                                        \
                                                                                                   \
		if (!next) {                                                                       \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		aside = sf_interpose_step_aside(demand);                                           \
		result = next(__VA_ARGS__);                                                        \
		sf_interpose_come_back(aside);                                                     \
		return result;                                                                     \
	}

INTERPOSE(setuid, SF_DEMAND_ALIKE, (uid_t id), id)
INTERPOSE(setgid, SF_DEMAND_ALIKE, (gid_t id), id)
INTERPOSE(seteuid, SF_DEMAND_ALIKE, (uid_t id), id)
INTERPOSE(setegid, SF_DEMAND_ALIKE, (gid_t id), id)
INTERPOSE(setreuid, SF_DEMAND_ALIKE, (uid_t real, uid_t effective), real, effective)
INTERPOSE(setregid, SF_DEMAND_ALIKE, (gid_t real, gid_t effective), real, effective)
INTERPOSE(setresuid, SF_DEMAND_ALIKE, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
INTERPOSE(setresgid, SF_DEMAND_ALIKE, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
INTERPOSE(setgroups, SF_DEMAND_ALIKE, (size_t n, const gid_t *groups), n, groups)
INTERPOSE(initgroups, SF_DEMAND_ALIKE, (const char *user, gid_t group), user, group)
INTERPOSE(unshare, sf_unshare_demand(flags), (int flags), flags)
INTERPOSE(setns, sf_setns_demand(fd, type), (int fd, int type), fd, type)

/* --- namespaces --- */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define FOR_CHILDREN (CLONE_NEWPID | CLONE_NEWTIME) /* unshare() moves the next child, and no thread may be made after it */
#define ALONE (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)
#define FOLLOWED (CLONE_NEWNS | CLONE_FS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

enum sf_demand sf_unshare_demand(int flags)
{
	if (flags & FOR_CHILDREN)
		return flags & ALONE ? SF_DEMAND_ALONE_FOR_GOOD : SF_DEMAND_NOTHING;
	return flags & (ALONE | FOLLOWED) ? SF_DEMAND_ALONE : SF_DEMAND_NOTHING;
}

/* `type` 0: whatever fd is, which then is the file of one namespace. */
enum sf_demand sf_setns_demand(int fd, int type)
{
	long kind = type ? type : sf_raw3(SYS_ioctl, fd, NS_GET_NSTYPE, 0);

	if (kind <= 0)
		return SF_DEMAND_NOTHING;
	if (kind & CLONE_NEWPID)
		return kind & ~CLONE_NEWPID ? SF_DEMAND_ALONE_FOR_GOOD : SF_DEMAND_NOTHING;
	return SF_DEMAND_ALONE;
}
