/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf map of a process (symbols/perf_map.h) as an image: that of its code in no file. Its addresses are those of the
 * process, and it has no unwind table. The file grows while the process runs, so names are read at the end.
 */
#ifndef SF_TARGET_PERF_MAP_FILE_H
#define SF_TARGET_PERF_MAP_FILE_H

#include "target/images.h"

/*
 * The perf map of a process, in its own /tmp and by the number that it has for itself. Of a process that has ended it is the
 * one in our /tmp. Everybody may write to /tmp, so the file must be the process's user's, or root's. A file that was last
 * written before the process began is of an earlier one with its number, and is not taken. NULL: there is no such file.
 */
struct sf_image *sf_perf_map_file(struct sf_images *images, int32_t pid);

#endif
