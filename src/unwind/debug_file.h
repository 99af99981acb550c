/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where else a file's .debug_frame may be: in the separate debug file that a distribution
 * ships, or in the small one that is packed into the file itself (.gnu_debugdata).
 */
#ifndef SF_UNWIND_DEBUG_FILE_H
#define SF_UNWIND_DEBUG_FILE_H

#include "unwind/elf_sections.h"

/*
 * The separate debug file with a .debug_frame, by build id below `root`/.build-id, or by
 * .gnu_debuglink beside the file, in .debug beside it, and below `root`. `root` is usually
 * SF_DEBUG_ROOT. False if there is none; else sf_elf_close it.
 */
#define SF_DEBUG_ROOT "/usr/lib/debug"
bool sf_debug_file_open(struct sf_elf *elf, const char *root, struct sf_elf *ret);

/* The file in .gnu_debugdata, unpacked; false if there is none. sf_elf_close it. */
bool sf_debug_data_open(struct sf_elf *elf, struct sf_elf *ret);

#endif
