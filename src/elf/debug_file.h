/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a file's debug data outside the file's own sections, on this machine only (no debuginfod). The
 * data may be in the separate file that a distribution ships, or in the small file that is packed into
 * the file itself (.gnu_debugdata). The caller closes the files that are found, with sf_elf_close.
 *
 * libdwfl is not used. It needs a path, and we may have a descriptor only (a deleted file, another
 * mount namespace, a memfd). It also uses the network when DEBUGINFOD_URLS is set.
 */
#ifndef SF_ELF_DEBUG_FILE_H
#define SF_ELF_DEBUG_FILE_H

#include <limits.h>

#include "elf/file.h"

#define SF_DEBUG_ROOT "/usr/lib/debug"

/*
 * The separate debug file, by build id below `root`/.build-id, or by .gnu_debuglink beside the
 * file, in .debug beside it, and below `root`, which is usually SF_DEBUG_ROOT. `path`: where the
 * file is; NULL: where the kernel says. False if there is none that belongs to it.
 */
bool sf_debug_file_open(struct sf_elf *elf, const char *path, const char *root,
			struct sf_elf *ret);

/* The file in .gnu_debugdata, unpacked; false if there is none. */
bool sf_debug_data_open(struct sf_elf *elf, struct sf_elf *ret);

/* The file that is packed into the bytes of .gnu_debugdata. */
bool sf_debug_data_unpack(struct sf_elf *elf, const struct sf_section *packed, struct sf_elf *ret);

/* Where the debug file of this build id would be; false for an id that cannot have one. */
bool sf_debug_file_path(const char *root, const uint8_t *build_id, size_t size,
			char ret[PATH_MAX]);

/* The folder that the file is in, without the final slash; false if it is unknown. */
bool sf_elf_folder(const struct sf_elf *elf, char ret[PATH_MAX]);

#endif
