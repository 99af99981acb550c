/* SPDX-License-Identifier: Apache-2.0 */
/* .NET's diagnostics socket, in the folder for temporary files that the process was started with. */
#ifndef SF_RUNTIME_CORECLR_LOAD_SOCKET_H
#define SF_RUNTIME_CORECLR_LOAD_SOCKET_H

#include <limits.h>
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

#endif
