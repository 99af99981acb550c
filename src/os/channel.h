/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel between two processes of one user on this machine. It carries whole messages, and descriptors
 * with them. Both ends check the user of the other end (SO_PEERCRED) and accept only the same user or root. There is
 * one exception: a command that root's stillframe has started may become another user. Its processes call that stillframe, too,
 * which checks that they descend from the command.
 *
 * Sockets are in a folder of the user: $XDG_RUNTIME_DIR/stillframe, else the first safe one of
 * /tmp/stillframe-UID, /tmp/stillframe-UID-1 and so on up to 9. The folder is made with mode 0700. Sockets
 * that are open to all have a folder of their own, /tmp/stillframe-UID-all and so on, of mode 0711. A folder
 * is not used if it belongs to another user or if others may write to it. The folder is opened before it is
 * checked, and used through the same descriptor.
 */
#ifndef SF_OS_CHANNEL_H
#define SF_OS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SF_CHANNEL_MAX 4096         /* bytes of a message */
#define SF_CHANNEL_PATH 108         /* bytes of a path, with the zero (sockaddr_un) */

/*
 * The path of the socket on which the calling process listens, with the agent inside, or as stillframe. The
 * folder is made. `pid`: its own.
 */
bool sf_channel_agent_path(int32_t pid, char ret[SF_CHANNEL_PATH], struct sf_error *err);
/* for_all: where every user can reach it. */
bool sf_channel_collector_path(int32_t pid, bool for_all, char ret[SF_CHANNEL_PATH], struct sf_error *err);

/*
 * A descriptor, close-on-exec, or -1. An old socket at the path, that nobody listens on, is
 * replaced.
 */
int sf_channel_listen(const char *path, struct sf_error *err);
/*
 * Every user may call the user's own socket at this path, in a folder for all, and is turned away unless
 * sf_channel_accept_any() is used.
 */
bool sf_channel_open_to_all(const char *path, struct sf_error *err);
/* Removes a socket of the user's own, when nobody is to call it any more. */
void sf_channel_remove(const char *path);
/*
 * Removes the user's sockets on which no process has listened for a minute: those of processes that were killed.
 * Sockets that are just being made are left alone.
 */
void sf_channel_sweep(void);
/*
 * -1 and SF_E_NONE when a caller was turned away (another user's), or none is there. Non-blocking.
 */
int sf_channel_accept(int listener, struct sf_error *err);
/* The same of any user. *is_own_ret: it is the same user, or root. Otherwise only its pid shows whether it may call. */
int sf_channel_accept_any(int listener, bool *is_own_ret, struct sf_error *err);
int sf_channel_connect(const char *path, struct sf_error *err);
/*
 * A connection to the agent in another process, also in its container; -1 (err->os_errno ENOENT: none
 * listens there).
 */
int sf_channel_call(int32_t pid, struct sf_error *err);

/* The process at the other end: who connected, or who began to listen. 0: of another container. */
bool sf_channel_peer(int channel, int32_t *pid_ret);

/* Sends one whole message, and fd if it is not -1. */
bool sf_channel_send(int channel, const void *bytes, size_t size, int fd, struct sf_error *err);
/*
 * Waits up to timeout_ms (-1: for ever) for a message of up to `size` bytes; *fd_ret is -1 if none
 * came with it. Its size; 0: the other end has closed; -1: an error, or time-out (err->os_errno
 * ETIMEDOUT).
 */
long sf_channel_receive(int channel, void *ret, size_t size, int *fd_ret, int timeout_ms,
			struct sf_error *err);

#endif
