/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading the agent into a running process by the means of its runtime: what is the same for all runtimes.
 *
 *   target.c     what must be known of the process before anything is done to it, and the socket at which it listens
 *
 * All of it happens in a forked child that is the target's user, so nothing of ours changes and
 * nothing is done with rights that the target does not have. Ordinary code; at most half a minute.
 */
#ifndef SF_RUNTIME_LOAD_LOAD_H
#define SF_RUNTIME_LOAD_LOAD_H

#include <limits.h>

#include "base/error.h"
#include "runtime/load/target.h"

/*
 * Has the runtime load a library, a path that the target sees, and begin with these options. Called in the child.
 */
typedef bool sf_load_fn(const struct sf_load_target *target, const char *library, const char *options,
			struct sf_error *err);

/*
 * `library` is an absolute path of ours. Where the target does not see this file it gets a copy in its /tmp, which is removed
 * when it is loaded. An agent that was loaded earlier is used again, and not loaded twice.
 */
bool sf_load(const struct sf_load_target *target, const char *library, const char *options,
	     sf_load_fn *load, struct sf_error *err);

/* --- a library where a process can open it. Called as the target's own user --- */

struct sf_load_library {
	char path[PATH_MAX];     /* as the target sees it */
	char copy[64];           /* its name in the target's /tmp, "": it is none of ours */
};

/*
 * `fd` is open on `path`. Where the target sees the same file, that; else a new file in its /tmp
 * that only it may read.
 */
bool sf_load_library_show(const struct sf_load_target *target, const char *path, int fd,
			  struct sf_load_library *ret, struct sf_error *err);

/* Removes the copy, if there is one: what is mapped stays. */
void sf_load_library_hide(const struct sf_load_target *target,
			  const struct sf_load_library *library);

#endif
