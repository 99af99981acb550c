/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: recordings, streams, exports. Other users may be able to write to the folder (/tmp).
 * A file that exists there already may therefore be a trap: a symbolic link, a hard link to an
 * important file, or a file that its owner will read.
 *
 * Output files contain names of functions, threads and files of the watched program. Only the owner
 * may read them (mode 0600; the umask may take away more).
 */
#ifndef SF_BASE_OUTPUT_FILE_H
#define SF_BASE_OUTPUT_FILE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Opens a regular file for reading and writing, without emptying it; makes it if it is missing. Refuses
 * a symbolic link, a file of another user, one that has a second name, and whatever is no regular
 * file. The descriptor is the caller's, and closes on exec. False leaves *ret as it was.
 */
bool sf_output_file_open(const char *path, int *ret, struct sf_error *err);

/* Whether a new file may take the place of what stands at `path`, by the same rules; nothing may. */
bool sf_output_file_check(const char *path, struct sf_error *err);

#endif
