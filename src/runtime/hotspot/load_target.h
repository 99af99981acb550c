/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual machine that an agent is to be loaded into, as it is seen from outside. */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_TARGET_H
#define SF_RUNTIME_HOTSPOT_LOAD_TARGET_H

#include <stdbool.h>
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
 * Looks, and refuses where loading cannot work or would do harm. The caller closes with
 * sf_load_target_close in any case.
 */
bool sf_load_target_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err);
void sf_load_target_close(struct sf_load_target *target);

/*
 * Whether it still runs the program that was looked at, and that catches SIGQUIT: exec takes all handlers
 * away, and the next program would be ended by the signal. To be called right before it is sent.
 */
bool sf_load_target_catches(const struct sf_load_target *target, struct sf_error *err);

/*
 * The path, as it sees it, of a library that it has mapped already and whose file name begins so,
 * "" if it has none; *deleted_ret: nothing stands there any more.
 */
void sf_load_target_mapped(const struct sf_load_target *target, const char *name, char *ret,
			   unsigned long size, bool *deleted_ret);

#endif
