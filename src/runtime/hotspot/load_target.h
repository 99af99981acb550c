/* SPDX-License-Identifier: Apache-2.0 */
/* A process with a virtual machine that an agent is to be loaded into (load/target.h): what only a virtual machine has. */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_TARGET_H
#define SF_RUNTIME_HOTSPOT_LOAD_TARGET_H

#include "runtime/load/target.h"

/*
 * Looks, and refuses where loading cannot work or would do harm. The caller closes with
 * sf_load_target_close in any case.
 */
bool sf_jvm_load_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err);

/*
 * Whether it still runs the program that was looked at, and that catches SIGQUIT: exec takes all handlers
 * away, and the next program would be ended by the signal. To be called right before it is sent.
 */
bool sf_jvm_load_catches(const struct sf_load_target *target, struct sf_error *err);

#endif
