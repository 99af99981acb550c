/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders for the sockets of os/channel.h. A folder is opened once, without following a link at its
 * end, and checked through its descriptor. All later operations in the folder use the same descriptor, so
 * that another process cannot replace the folder in between.
 */
#ifndef SF_OS_LINUX_CHANNEL_PATHS_H
#define SF_OS_LINUX_CHANNEL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SF_CHANNEL_ANYBODY ((uid_t)-1)

/*
 * The folders of the user's own, best first: the first safe one is taken. False: there are no more. ret
 * is "" where there is no room for the path.
 */
bool sf_channel_own_folder(unsigned i, char *ret, size_t size);
/* The same for sockets that are open to all. */
bool sf_channel_all_folder(unsigned i, char *ret, size_t size);

/*
 * An O_PATH descriptor of a folder that belongs to `owner`, and in which nobody else can put anything; -1.
 * `at`: a folder from which a relative path starts, or AT_FDCWD. The caller closes.
 */
int sf_channel_open_folder(int at, const char *path, uid_t owner, struct sf_error *err);

/*
 * An O_PATH descriptor of a socket in a folder that was opened so, and that belongs to whom the folder
 * belongs; -1 and errno. The caller closes.
 */
int sf_channel_open_socket(int folder, const char *name);

/*
 * The same of the socket on which the agent in another process listens, also in its container; -1
 * (err->os_errno ENOENT: there is none).
 */
int sf_channel_find_agent(int32_t pid, struct sf_error *err);

#endif
