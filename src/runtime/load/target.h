/* SPDX-License-Identifier: Apache-2.0 */
/* A process that an agent is to be loaded into, as it is seen from outside, and the socket at which its runtime listens. */
#ifndef SF_RUNTIME_LOAD_TARGET_H
#define SF_RUNTIME_LOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct sf_load_target {
	int32_t  pid, inner_pid;     /* here, and in its own pid namespace */
	uint32_t uid, gid;           /* effective */
	int      root, tmp, folder;  /* O_PATH: its root folder, its /tmp, where it is; -1: none */
	int      process;            /* stands for it, taken before anything else; -1: not to be had
				      * here */
	int      maps;               /* its memory map, open since it was looked at; -1: not allowed */
	uint64_t until_ns;           /* CLOCK_MONOTONIC, when it is given up */
};

/*
 * Refuses where no runtime can load an agent: another user's process, and one that is stopped. The caller closes with
 * sf_load_target_close in any case.
 */
bool sf_load_target_open(int32_t pid, struct sf_load_target *ret, struct sf_error *err);
void sf_load_target_close(struct sf_load_target *target);

/* False: it executes another program by now, or has ended. Where the map cannot be read, true. */
bool sf_load_target_is_same(const struct sf_load_target *target);

/*
 * The path, as the process sees it, of a file that it has mapped and whose name begins so, "" if there
 * is none; *deleted_ret: nothing stands there any more.
 */
void sf_load_mapped(int32_t pid, const char *name, char *ret, size_t size, bool *deleted_ret);

/* A file of /proc/PID, cut to size - 1, with a zero behind; the number of bytes, -1 when it cannot be read. */
long sf_load_read_text(int32_t pid, const char *name, char *ret, size_t size);

/* The n-th number, in this base, behind a name in /proc/PID/status. */
bool sf_load_status_number(const char *status, const char *name, unsigned n, int base, uint64_t *ret);

/*
 * --- a socket at which its runtime listens. Called as the target's own user (load.c) ---
 *
 * Every user with the right to write to the folder can put another file there: the file's owner and the process behind it
 * are checked.
 */

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
