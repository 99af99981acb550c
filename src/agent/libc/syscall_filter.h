/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System-call filters (seccomp(2)) may end a process for a call, as systemd's SystemCallFilter= does. Not every filter
 * forbids the calls that the agent needs. So a child process tries these calls first; a filter then ends only the child.
 * A filter that only makes calls fail does no harm.
 */
#ifndef SF_AGENT_LIBC_SYSCALL_FILTER_H
#define SF_AGENT_LIBC_SYSCALL_FILTER_H

#include <stdbool.h>

#include "base/error.h"

/* The uses of a system call. */
enum {
	SF_FILTER_SAMPLING = 1,  /* whichever way */
	SF_FILTER_PERF = 2,      /* clocks/perf.c */
	SF_FILTER_CHANNEL = 4,   /* control.c, and stillframe at its other end */
	SF_FILTER_RIGHTS = 8,    /* host/spawn.c */
	SF_FILTER_ASIDE = 16,    /* aside.c */
};

/*
 * Checks the filter of the calling thread, which also holds for threads that it starts. False, with the names of the
 * calls: a call that is needed for `uses` would end the process. Without a filter this takes some system calls. With a
 * filter it takes a child process that the program does not notice: no SIGCHLD, and no wait() returns it. Any thread;
 * not signal-safe.
 */
bool sf_filter_check(unsigned uses, struct sf_error *err);

/* A system call with six arguments that is about to put a filter on: prctl(2) or seccomp(2). */
struct sf_filter_call {
	long number, args[6];
};

/*
 * Whether from this call on the calling thread handles its system calls itself (PR_SET_SYSCALL_USER_DISPATCH of prctl(2)): also
 * those of a signal handler, and the one by which a handler returns. From then on each check fails. Signal-safe.
 */
bool sf_filter_notes_dispatch(const struct sf_filter_call *call);
/* Whether a thread does. It may have named libc's code as the place from which calls are left alone. Signal-safe. */
bool sf_filter_has_dispatch(void);
/* In a forked child: its thread does not. */
void sf_filter_after_fork_in_child(void);

/* The same, as it would be afterwards. */
bool sf_filter_check_after(const struct sf_filter_call *call, unsigned uses, struct sf_error *err);

/* The same by the last check, whatever that was for. */
bool sf_filter_allows(unsigned uses, struct sf_error *err);

#endif
