/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with symbols and debug data for an image: the image, its separate debug file, and the file
 * that the debug file shares with others (.gnu_debugaltlink). The DWARF of one of them is opened if it is
 * safe to read. For src/symbols only.
 */
#ifndef SF_SYMBOLS_SOURCES_H
#define SF_SYMBOLS_SOURCES_H

#include <elfutils/libdw.h>
#include <limits.h>

#include "base/digest.h"
#include "elf/file.h"

struct sf_sources {
	struct sf_elf image, debug, alt; /* debug, alt: not open where there is none */
	bool settled;                    /* image and debug are in memory, where nothing changes them */
	const struct sf_elf *dwarf_of;   /* the one of these two whose DWARF may be opened; NULL: there is none */
	Dwarf *dwarf;                    /* of that one, or NULL */
	Dwarf *alt_dwarf;                /* what `dwarf` shares with others, or NULL */
	Elf *no_alt;                     /* an empty file, for those that share nothing, */
	Dwarf *no_alt_dwarf;             /* not NULL where `dwarf` is not */
};

/*
 * Opens what there is for the file behind `fd`, of which a copy is kept. `path`: see sf_symbols_open. `dwarf`: also
 * what has debug data, but its DWARF. False when the image itself cannot be read: then nothing is left open.
 */
bool sf_sources_open(int fd, const char *path, bool dwarf, struct sf_sources *ret,
		     struct sf_error *err);
void sf_sources_close(struct sf_sources *sources); /* of zeroed ones too */

/* Opens the DWARF, the first time that it is called: that unpacks its sections. */
void sf_sources_need_dwarf(struct sf_sources *sources);

/*
 * A digest of all that names come from: of the files' bytes, of the file's name, and of the builds of stillframe and of
 * its libraries. False: the files are too large, or there are more than these two, or a build has no id.
 */
bool sf_sources_digest(const struct sf_sources *sources, const char *name, uint8_t ret[SF_DIGEST_SIZE]);

/* The file that `dwarf` is of. */
const struct sf_elf *sf_sources_dwarf_file(const struct sf_sources *sources);

/* Whether unpacking the compressed sections takes an acceptable amount of memory. */
bool sf_dwarf_is_sane(Elf *elf);

/*
 * Whether the string sections end with a zero. libdw hands out any place in them as a string, so
 * data of which this is not true must not be used. Only after dwarf_begin, which unpacks them.
 */
bool sf_dwarf_strings_end(Dwarf *dwarf);

/* Makes bytes of debug data writable: mapped ones are our own from here on, unpacked ones are from malloc. */
bool sf_dwarf_make_writable(const void *bytes, size_t size);

/* `name`, below `folder` ("": there is none) unless it is absolute; false when it is too long. */
#define SF_JOINED_MAX (2 * PATH_MAX)
bool sf_dwarf_join_path(const char *folder, const char *name, char ret[SF_JOINED_MAX]);

/*
 * The entry of the split unit that belongs to `skeleton`, a unit's entry that is whole
 * (sf_die_is_whole), in the debug data of `file`, which is mapped (sf_elf_map). `no_alt` becomes
 * what the split file (.dwo) shares with others. False if there is none, or none that is safe to read.
 */
bool sf_split_find(Dwarf_Die *skeleton, const struct sf_elf *file, Dwarf *no_alt, Dwarf_Die *ret);

#endif
