/* SPDX-License-Identifier: Apache-2.0 */
/* A library where a process can open it. Called as the target's own user (load.c). */
#ifndef SF_RUNTIME_LOAD_LIBRARY_H
#define SF_RUNTIME_LOAD_LIBRARY_H

#include <limits.h>

#include "base/error.h"
#include "runtime/load/target.h"

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
