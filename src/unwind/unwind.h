/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a module's unwind information to an immutable table of rows (frozen/unwind/table.h).
 *
 * Sources, in order:
 *   1. .eh_frame, found by section, or through PT_GNU_EH_FRAME where section headers are missing, with or
 *      without .eh_frame_hdr's search table
 *   2. .debug_frame, compressed or not, in the file or in the separate debug file that the build id or
 *      the debug link names
 *   3. .debug_frame in .gnu_debugdata
 *   4. .gopclntab, the tables of Go's runtime, where there is no .debug_frame
 *
 * Where sources overlap, the first wins. PLT sections that no row covers get rows by rule of thumb, marked
 * SF_RULES_GUESS, and so does the code at the entry point, which has no caller. Everything in a file is hostile:
 * lengths are checked, loops are bounded, and a bad entry costs that entry, not the table.
 *
 * Tables are kept on disk (cache.h) by a digest of their inputs (inputs.h). A build id is not sufficient, because the
 * file itself contains it: the table would be used for another file with that build id, in every process.
 */
#ifndef SF_UNWIND_UNWIND_H
#define SF_UNWIND_UNWIND_H

#include <stddef.h>

#include "base/error.h"
#include "elf/work.h"
#include "frozen/unwind/table.h"
#include "target/image.h"
#include "unwind/cache.h"

/*
 * Builds the table of the ELF file behind `fd` (x86-64 or aarch64). On success *ret is a block that
 * sf_table_init accepts; the caller passes it to sf_unwind_close. A file without any unwind
 * information gives a table with no rows. Not signal-safe; several threads at once are fine.
 */
bool sf_unwind_build(int fd, void **ret, size_t *size_ret, struct sf_error *err);

/*
 * The table for a file, from the cache if it is there, else built and, if `keep`, put there (a cache
 * that cannot be written is no error). In both cases the file's unwind sections are read. The block is in memory of
 * its own; the caller passes it and its size to sf_unwind_close. The bytes that are read count as `work`. Any thread.
 */
bool sf_unwind_open(int fd, bool keep, struct sf_work *work, struct sf_table *ret,
		    void **block_ret, size_t *size_ret, struct sf_error *err);
void sf_unwind_close(void *block, size_t size);

/* Under which key the table of a file is kept; false when it can have none. Any thread. */
bool sf_unwind_key(int fd, struct sf_cache_key *ret);

/*
 * The table of an image, whose descriptor is open: from the cache, else built, and kept there. Fills
 * table, table_block and table_size, or else note. Any thread, for different images. Unload takes an image
 * without a table, too.
 */
void sf_image_load_table(struct sf_image *image);
void sf_image_unload_table(struct sf_image *image);

#endif
