/* SPDX-License-Identifier: Apache-2.0 */
/* .NET's diagnostics socket, in the folder for temporary files that the process was started with. */
#ifndef SF_RUNTIME_CORECLR_LOAD_SOCKET_H
#define SF_RUNTIME_CORECLR_LOAD_SOCKET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/load/target.h"

#define SF_CLR_SOCKET_NAME 64

/*
 * The name of the socket, and the folder in which it is, as the process sees it. False: the process cannot be looked at.
 */
bool sf_clr_socket_name(int32_t pid, char folder_ret[PATH_MAX], char name_ret[SF_CLR_SOCKET_NAME]);

/* Whether the socket is there, and is the target's; if not, why. */
bool sf_clr_socket_check(const struct sf_load_target *target, struct sf_error *err);

/*
 * Sends a request and reads its reply: the number of bytes, -1 when there is none in time (target->until_ns) or
 * it is none.
 */
long sf_clr_socket_ask(const struct sf_load_target *target, const uint8_t *request, size_t request_size,
		       uint8_t *ret, size_t size, struct sf_error *err);
/* The second part of it: reads one message, and no byte behind it, from a connection. `ret` begins with zeros. */
long sf_clr_socket_receive(const struct sf_load_target *target, int fd, uint8_t *ret, size_t size, struct sf_error *err);

/*
 * The messages of the diagnostics socket. A message is 14 bytes of magic, its size with all of the header (u16), a set and a
 * number of a command, two bytes of zero, and the command's own bytes; numbers are little-endian. Replies are hostile.
 */
#define SF_CLR_MESSAGE_HEADER 20
#define SF_CLR_MAX_MESSAGE 16384

/* The bytes of a request to load `library` as the profiler, 0: it does not fit, or its path is not UTF-8. */
size_t sf_clr_message_attach(const char *library, const char *options, uint8_t *ret, size_t size);

/* The bytes of a request to end a session of EventPipe, 0: they do not fit. */
size_t sf_clr_message_stop(uint64_t session, uint8_t *ret, size_t size);

/*
 * Whether the reply to that request says that the agent has begun: its result is `expected`, SF_CLR_PROFILER_STAYS or
 * SF_CLR_PROFILER_DECLINES.
 */
bool sf_clr_message_judge(const uint8_t *reply, size_t size, int pid, int32_t expected, struct sf_error *err);

#endif
