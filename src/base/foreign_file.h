/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files whose names come from outside: from a watched process, from an ELF or DWARF file,
 * from a recording or a stream. The maker of such a name chooses what it leads to, and merely
 * opening a device, a FIFO or an automount can reboot a machine, hang, or mount something. So a
 * file is first found with O_PATH, which has no effect on it; only a regular file of an ordinary
 * file system is then opened, through the descriptor and not by its name again.
 *
 * A file of a FUSE file system is opened: programs run from there (AppImage, rootless containers).
 * Its server decides how long reading takes.
 *
 * Descriptors are the caller's, and close on exec. Not signal-safe: reads directories.
 */
#ifndef SF_BASE_FOREIGN_FILE_H
#define SF_BASE_FOREIGN_FILE_H

#include <fcntl.h>
#include <stdbool.h>

#include "base/error.h"

/*
 * Finds and opens a regular file for reading. `root`: AT_FDCWD, or a folder that stands for "/", so
 * that neither ".." nor an absolute symbolic link leads out of it (the root of a container). Symbolic
 * links are followed; no automount is triggered. False leaves *ret as it was.
 */
bool sf_foreign_open(int root, const char *path, int *ret, struct sf_error *err);

/*
 * The same for a file that was already found: `found` is an O_PATH descriptor, and stays the caller's.
 * `name` is for messages.
 */
bool sf_foreign_open_found(int found, const char *name, int *ret, struct sf_error *err);

/* The same for a path that is the user's own: links are followed as by open(2); what is there may be anybody's. */
bool sf_foreign_open_user(const char *path, int *ret, struct sf_error *err);

/*
 * Only finds: an O_PATH descriptor of whatever stands there, by the rules of sf_foreign_open; -1 and
 * errno if nothing does.
 */
int sf_foreign_find(int root, const char *path);

#endif
