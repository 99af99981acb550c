/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libc that the agent stands in front of. These files are compiled into the shared
 * library itself, not into the archive that unit tests link. They call the rest of the agent through sf_interpose_hooks.
 *
 * A call in which the agent has nothing to do touches no thread-local variable, errno neither, unless it fails: Chromium
 * makes system calls in a child of clone(2) whose thread register leads to zeroes.
 */
#ifndef SF_AGENT_INTERPOSE_INTERPOSE_H
#define SF_AGENT_INTERPOSE_INTERPOSE_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "agent/libc/syscall_filter.h"
#include "frozen/raw.h"

#define SF_INTERPOSED __attribute__((visibility("default")))

/* The functions behind ours: libc's, or another library's in front of libc. To add one: a line here. */
#define SF_INTERPOSED_FUNCTIONS(X) \
	X(execve) X(execveat) X(execvpe) X(fexecve) X(pthread_create) X(sigaction) X(sigtimedwait) X(signalfd) \
	X(setuid) X(setgid) X(seteuid) X(setegid) X(setreuid) X(setregid) X(setresuid) X(setresgid) \
	X(setgroups) X(initgroups) X(unshare) X(setns) X(posix_spawn) X(posix_spawnp) \
	X(pthread_exit) X(thrd_exit) X(fork) X(daemon) X(forkpty) X(dlclose) X(prctl) X(syscall) \
	X(stat) X(stat64) X(fstatat) X(fstatat64) X(__xstat) X(__xstat64) X(__fxstatat) X(__fxstatat64) \
	X(fallocate) X(fallocate64) X(posix_fallocate) X(posix_fallocate64)

enum sf_interposed {
#define X(name) SF_NEXT_##name,
	SF_INTERPOSED_FUNCTIONS(X)
#undef X
	SF_N_NEXT
};

/* Looks all of them up, once, when the agent is loaded. */
void sf_interpose_init(void);
/* NULL before that, or if there is no such function. Signal-safe. */
void *sf_interpose_next(enum sf_interposed which);
/* The same, but looks the function up before the agent's constructor has run. Not signal-safe. */
void *sf_interpose_find(enum sf_interposed which);

void sf_interpose_signal_init(void);
void sf_interpose_fork_init(void); /* forks by functions that are not interposed: by handlers of pthread_atfork() */
void sf_interpose_syscall_init(void);

/* The condition that a call of the program puts on all threads of the process. */
enum sf_demand {
	SF_DEMAND_NOTHING,
	SF_DEMAND_ALIKE,          /* the same rights: else libc ends the process (host/spawn.h) */
	SF_DEMAND_ALONE,          /* that there is only the calling one */
	SF_DEMAND_ALONE_FOR_GOOD, /* the same, and the kernel lets no other be made after it */
};

/*
 * The work of the agent around calls of the program. lifecycle.c has the table and sets it once, when the agent is loaded;
 * before that the pointer is NULL and the interposers only pass the calls on. Any thread may call any of the functions.
 * All but before_filter, come_back and thread_ends, step_aside where it is true, and after_fork_in_child are signal-safe.
 */
struct sf_interpose_hooks {
	void (*thread_made)(void);                                     /* by a pthread_create that succeeded */
	void (*code_gone)(void);                                       /* a dlclose has succeeded */
	bool (*before_exec)(void);                                     /* true: after_exec is due if the exec fails */
	void (*after_exec)(void);
	/* STILLFRAME=..., if the program is not sampled when this process, or a child, executes it; or NULL. */
	const char *(*useless_variable)(const char *program, bool child);
	bool (*is_sent)(const siginfo_t *info);                        /* this signal is one of the agent's own */
	bool (*drop_sent)(void);                                       /* that are pending; true: no other is */
	void (*before_filter)(const struct sf_filter_call *call);      /* the call installs a system-call filter */
	bool (*step_aside)(enum sf_demand demand);                     /* true: come_back is due after the call */
	void (*come_back)(void);
	unsigned (*own_threads)(void);                                 /* how many threads the agent has */
	void (*thread_ends)(void);                                     /* the calling thread is about to end, and no other */
	/* Around a fork; the last one in the child. All keep errno. */
	void (*before_fork)(void);
	void (*after_fork)(void);
	void (*after_fork_in_child)(void);
};

extern const struct sf_interpose_hooks *_Atomic sf_interpose_hooks;

/* As libc returns what the kernel gives. */
static inline long sf_interpose_result(long result)
{
	if ((unsigned long)result < -4095ul)
		return result;
	errno = (int)-result;
	return -1;
}

/* Around a call that demands something; both keep errno. True: sf_interpose_come_back is due. */
bool sf_interpose_step_aside(enum sf_demand demand);
void sf_interpose_come_back(bool is_due);
/* Of unshare(2) and setns(2). */
enum sf_demand sf_unshare_demand(int flags);
enum sf_demand sf_setns_demand(int fd, int type);

/* Before the calling thread ends, by a function of libc's or by exit(2). */
void sf_interpose_thread_ends(void);

/*
 * rt_sigaction(2) by number, as runtimes call it that set the actions of all signals, also of those that libc keeps to itself.
 * True: it was of the agent's signal, and is done, with the result that the kernel would give: the kernel is not called. After such
 * a call that has succeeded: our handler may depend on another signal's action, and the child of a vfork does not see our handler.
 * Both are signal-safe.
 */
bool sf_interpose_own_action(const struct sf_filter_call *call, long *result_ret);
void sf_interpose_action_changed(const struct sf_filter_call *call);

/*
 * Of calls that wait for signals: whether they have got one of ours, the rest of a time that began then, and a signalfd's set
 * without our signal: in `ret`, or the program's own where nothing else is in it, or the kernel cannot read it. Signal-safe.
 */
bool sf_interpose_is_ours(int signal, const siginfo_t *info);
struct timespec sf_interpose_left(uint64_t start_ns, const struct timespec *time);
const sigset_t *sf_interpose_signalfd_set(const sigset_t *mask, sigset_t *ret);

/*
 * After rt_sigpending(2): takes our signal out of the set, of `size` bytes, if only signals of ours are pending, and drops these.
 * Signal-safe.
 */
void sf_interpose_pending(uint8_t *set, size_t size);

/*
 * Around a call by number that a signal would undo (undone.c): the first returns what the second is given. The second is inline, as
 * a tick that waited comes in it: the function that makes the call has the sample. Signal-safe.
 */
uint64_t sf_interpose_begin_undone(const struct sf_filter_call *call);

static inline void sf_interpose_end_undone(uint64_t blocked)
{
	if (blocked)
		sf_raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &blocked, NULL, sizeof(blocked));
}

/* execve(2) and execveat(2) by number, as the functions of libc. Signal-safe. */
long sf_interpose_exec(const struct sf_filter_call *call);

#endif
