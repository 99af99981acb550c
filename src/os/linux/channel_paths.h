/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SF_OS_LINUX_CHANNEL_PATHS_H
#define SF_OS_LINUX_CHANNEL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Where the user's sockets stand: the folder's own path. False: no room for it. */
bool sf_channel_own_folder(char *ret, size_t size);

/* Whether it is a folder that belongs to `owner`, in which nobody else can put anything. */
bool sf_channel_check_folder(const char *path, uid_t owner, struct sf_error *err);

#endif
