/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups (cgroup v2): which processes are in one, and those below it. */
#ifndef SF_OS_CGROUP_H
#define SF_OS_CGROUP_H

#include <stdbool.h>

#include "base/error.h"
#include "os/process.h"

/* Its folder: `path` is absolute, or below where cgroup2 is mounted. -1 and what is wrong. The caller closes. */
int sf_cgroup_open(const char *path, struct sf_error *err);

/* Appends the processes that are in it, and in those below it. False: no memory. */
bool sf_cgroup_processes(int fd, struct sf_ids *ret);

/* Whether it has been removed since it was opened. Another one of its name is none that this folder shows. */
bool sf_cgroup_is_removed(int fd);

#endif
