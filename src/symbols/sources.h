/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with symbols and debug data for an image: the image, its separate debug file, and the file
 * that the debug file shares with others (.gnu_debugaltlink). The DWARF of one of them is opened if it is
 * safe to read. For src/symbols only.
 */
#ifndef SF_SYMBOLS_SOURCES_H
#define SF_SYMBOLS_SOURCES_H

#include <elfutils/libdw.h>

#include "elf/file.h"

struct sf_sources {
	struct sf_elf image, debug, alt; /* debug, alt: not open where there is none */
	Dwarf *dwarf;                    /* of the image or of its debug file, or NULL */
	Dwarf *alt_dwarf;                /* what `dwarf` shares with others, or NULL */
	Elf *no_alt;                     /* an empty file, for those that share nothing, */
	Dwarf *no_alt_dwarf;             /* not NULL where `dwarf` is not */
};

/*
 * Opens what there is for the file behind `fd`, of which a copy is kept. `path`: see
 * sf_symbols_open. `dwarf`: also what has debug data. False when the image itself cannot be read: then nothing is left open.
 */
bool sf_sources_open(int fd, const char *path, bool dwarf, struct sf_sources *ret,
		     struct sf_error *err);
void sf_sources_close(struct sf_sources *sources); /* of zeroed ones too */

/* The file that `dwarf` is of. */
const struct sf_elf *sf_sources_dwarf_file(const struct sf_sources *sources);

#endif
