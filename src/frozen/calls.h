/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of system calls that a signal interrupts. Signal-safe. */
#ifndef SF_FROZEN_CALLS_H
#define SF_FROZEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this call, failed with EINTR, had no effect and may be made again as it was. */
bool sf_call_mends(int32_t number);

/* Whether the call is one that waits for a signal: by itself, or by the mask that it is given. */
bool sf_call_waits_for_signal(int32_t number, const uint64_t args[6]);

/* Whether the kernel itself makes the call again after a handler with SA_RESTART. */
bool sf_call_restarts(int32_t number, const uint64_t args[6]);

#endif
