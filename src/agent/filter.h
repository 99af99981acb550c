/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System-call filters (seccomp(2)) may end a process for a call, as systemd's SystemCallFilter= does. Not each of them
 * forbids what we need, so all of that is tried first, by a child: it is the child that is ended. A filter that only
 * refuses is no matter.
 */
#ifndef SF_AGENT_FILTER_H
#define SF_AGENT_FILTER_H

#include <stdbool.h>

#include "base/error.h"

/* What a call is needed for. */
enum {
	SF_FILTER_SAMPLING = 1,  /* whichever way */
	SF_FILTER_PERF = 2,      /* clock_perf.c */
	SF_FILTER_CHANNEL = 4,   /* control.c, and stillframe at its other end */
};

/*
 * What the calling thread may not do, and so those that it starts. False, with the names of the calls, when one that is
 * needed for `uses` would end the process. Some system calls where there is no filter; a child where there is one, which
 * is not the program's: no SIGCHLD, and no wait() meets it. Any thread; not signal-safe.
 */
bool sf_filter_check(unsigned uses, struct sf_error *err);

/* A system call with six arguments that is about to put a filter on: prctl(PR_SET_SECCOMP) or seccomp(2). */
struct sf_filter_call {
	long number, args[6];
};

/* The same, as it would be afterwards. */
bool sf_filter_check_after(const struct sf_filter_call *call, unsigned uses, struct sf_error *err);

/* The same by the last check, whatever that was for. */
bool sf_filter_allows(unsigned uses, struct sf_error *err);

#endif
