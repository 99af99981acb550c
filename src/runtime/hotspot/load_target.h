/* SPDX-License-Identifier: Apache-2.0 */
/* A process with a virtual machine that an agent is to be loaded into (load/target.h): what only a virtual machine has. */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_TARGET_H
#define SF_RUNTIME_HOTSPOT_LOAD_TARGET_H

#include <stddef.h>

#include "base/error.h"
#include "runtime/load/target.h"

/*
 * Looks, and refuses where loading cannot work or would do harm. The caller closes with
 * sf_load_target_close in any case.
 */
bool sf_jvm_load_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err);

/* --- its attach socket. Called as the target's own user (load.c) --- */

/*
 * A connection to the machine itself (its pid is checked), which is made to listen if it does not;
 * -1. The caller closes. At most 10 s, and 5 more where it does not accept the connection.
 */
int sf_jvm_load_connect(const struct sf_load_target *target, struct sf_error *err);

/*
 * Sends a request on a connection and reads the reply up to its end: the number of bytes, -1 when
 * there is none in time (target->until_ns) or it does not fit.
 */
long sf_jvm_load_ask(const struct sf_load_target *target, int fd, const char *request,
		 size_t request_size, char *ret, size_t size, struct sf_error *err);

#endif
