/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of the diagnostics socket. A message is 14 bytes of magic, its size with all of the header (u16), a set and a
 * number of a command, two bytes of zero, and the command's own bytes; numbers are little-endian. Replies are hostile.
 */
#ifndef SF_RUNTIME_CORECLR_LOAD_MESSAGE_H
#define SF_RUNTIME_CORECLR_LOAD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SF_CLR_MESSAGE_HEADER 20
#define SF_CLR_MAX_MESSAGE 16384

/* The bytes of a request to load `library` as the profiler, 0: it does not fit, or its path is not UTF-8. */
size_t sf_clr_message_attach(const char *library, const char *options, uint8_t *ret, size_t size);

/* The bytes of a request to end a session of EventPipe, 0: they do not fit; and whether the reply says that it has ended. */
size_t sf_clr_message_stop(uint64_t session, uint8_t *ret, size_t size);
bool sf_clr_message_is_stopped(const uint8_t *reply, size_t size);

/* The size that a message of at least SF_CLR_MESSAGE_HEADER bytes says it has; 0: it is none. */
size_t sf_clr_message_size(const uint8_t *message);

/*
 * Whether the reply to that request says that the agent has begun: its result is `expected`, SF_CLR_PROFILER_STAYS or
 * SF_CLR_PROFILER_DECLINES.
 */
bool sf_clr_message_judge(const uint8_t *reply, size_t size, int pid, int32_t expected, struct sf_error *err);

#endif
