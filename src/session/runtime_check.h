/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out, for `stillframe doctor`, what can be shown of the runtimes in a process. The process is not changed. */
#ifndef SF_SESSION_RUNTIME_CHECK_H
#define SF_SESSION_RUNTIME_CHECK_H

#include "base/error.h"
#include "runtime/runtime.h"

/* False when the process cannot be looked at. */
bool sf_runtime_check(int32_t pid, const struct sf_runtime_findings *findings, struct sf_error *err);

#endif
