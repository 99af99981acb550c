/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket at which the runtime of a process listens. Called as the target's own user (load.c). Every user with the right to
 * write to the folder can put another file there: the file's owner and the process behind it are checked.
 */
#ifndef SF_RUNTIME_LOAD_SOCKET_H
#define SF_RUNTIME_LOAD_SOCKET_H

#include "runtime/load/target.h"

/*
 * The file itself, O_PATH, not where a link may lead; -1 and errno, EPERM where it belongs to another user.
 */
int sf_load_socket_file(const struct sf_load_target *target, int folder, const char *name);

/*
 * A connection to the target itself; -1 and errno: no process listens there (ENOENT, ECONNREFUSED), it belongs to another user
 * (EPERM), or the connection was not accepted in 5 s (EAGAIN).
 */
int sf_load_socket_connect(const struct sf_load_target *target, int folder, const char *name);

/* False and errno. */
bool sf_load_socket_send(int fd, const char *bytes, size_t size);

/* The number of bytes; 0: the end; -1 and errno: an error, or no time is left (ETIMEDOUT). */
long sf_load_socket_receive(int fd, char *ret, size_t size, uint64_t until_ns);

#endif
