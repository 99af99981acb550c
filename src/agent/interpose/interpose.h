/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libc that the agent stands in front of. These files are compiled into the shared
 * library itself, not into the archive that unit tests link. They call the rest of the agent through sf_interpose_hooks.
 */
#ifndef SF_AGENT_INTERPOSE_INTERPOSE_H
#define SF_AGENT_INTERPOSE_INTERPOSE_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "agent/libc/syscall_filter.h"

#define SF_INTERPOSED __attribute__((visibility("default")))

/* The functions behind ours: libc's, or another library's in front of libc. To add one: a line here. */
#define SF_INTERPOSED_FUNCTIONS(X) \
	X(execve) X(execvpe) X(fexecve) X(pthread_create) X(sigaction) X(sigtimedwait) X(signalfd)

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
void sf_interpose_syscall_init(void);

/*
 * The work of the agent around calls of the program. lifecycle.c has the table and sets it once, when the agent is loaded;
 * before that the pointer is NULL and the interposers only pass the calls on. Any thread may call any of the functions.
 * All but before_filter are signal-safe.
 */
struct sf_interpose_hooks {
	void (*thread_made)(void);                                     /* by a pthread_create that succeeded */
	bool (*before_exec)(void);                                     /* true: after_exec is due if the exec fails */
	void (*after_exec)(void);
	bool (*is_sent)(const siginfo_t *info);                        /* this signal is one of the agent's own */
	void (*before_filter)(const struct sf_filter_call *call);      /* the call installs a system-call filter */
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

/* Before a system call that the program makes by syscall(2) or prctl(2). */
void sf_interpose_before(const struct sf_filter_call *call);

#endif
