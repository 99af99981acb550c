/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf map of a process (symbols/perf_map.h) as an image: that of its code in no file. Its addresses are those of the
 * process, and it has no unwind table. The file grows while the process runs, so names are read at the end.
 */
#ifndef SF_TARGET_PERF_MAP_FILE_H
#define SF_TARGET_PERF_MAP_FILE_H

#include "target/images.h"

/* Whether a file with this path is one. */
bool sf_is_perf_map_path(const char *path);

/*
 * The perf map that the process has for itself, in its own /tmp and by its own number; of one that has ended, the one in our /tmp.
 * Only a file of root, or of the process's user, is taken: everybody may write to /tmp. NULL: there is none.
 */
struct sf_image *sf_perf_map_file(struct sf_images *images, int32_t pid);

#endif
