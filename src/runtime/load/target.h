/* SPDX-License-Identifier: Apache-2.0 */
/* A process that an agent is to be loaded into, as it is seen from outside. Nothing here does anything to it. */
#ifndef SF_RUNTIME_LOAD_TARGET_H
#define SF_RUNTIME_LOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sf_load_target {
	int32_t  pid, inner_pid;     /* here, and in its own pid namespace */
	uint32_t uid, gid;           /* effective */
	int      root, tmp, folder;  /* O_PATH: its root folder, its /tmp, where it is; -1: none */
	int      process;            /* stands for it, taken before anything else; -1: not to be had
				      * here */
	int      maps;               /* its memory map, open since it was looked at; -1: not allowed */
	uint64_t until_ns;           /* CLOCK_MONOTONIC, when it is given up */
};

/*
 * Refuses where no runtime can load an agent: another user's process, and one that is stopped. The caller closes with
 * sf_load_target_close in any case.
 */
bool sf_load_target_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err);
void sf_load_target_close(struct sf_load_target *target);

/* False: it executes another program by now, or has ended. Where the map cannot be read, true. */
bool sf_load_target_is_same(const struct sf_load_target *target);

/*
 * The path, as the process sees it, of a file that it has mapped and whose name begins so, "" if there
 * is none; *deleted_ret: nothing stands there any more.
 */
void sf_load_mapped(int32_t pid, const char *name, char *ret, size_t size, bool *deleted_ret);

/* A file of /proc/PID, cut to size - 1, with a zero behind; the number of bytes, -1 when it cannot be read. */
long sf_load_read_text(int32_t pid, const char *name, char *ret, size_t size);

/* The n-th number, in this base, behind a name in /proc/PID/status. */
bool sf_load_status_number(const char *status, const char *name, unsigned n, int base, uint64_t *ret);

#endif
