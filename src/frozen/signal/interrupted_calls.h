/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about system calls that a signal interrupts. Signal-safe. */
#ifndef SF_FROZEN_SIGNAL_INTERRUPTED_CALLS_H
#define SF_FROZEN_SIGNAL_INTERRUPTED_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this call, if it failed with EINTR, had no effect and may be made again unchanged. */
bool sf_call_mends(int32_t number);

/* Whether the call waits for a signal: by its nature, or because of its signal mask argument. */
bool sf_call_waits_for_signal(int32_t number, const uint64_t args[6]);

/* Whether the kernel itself makes the call again after a handler with SA_RESTART. */
bool sf_call_restarts(int32_t number, const uint64_t args[6]);

#endif
