/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open ELF file: a program, a library or the debug data of one, 64-bit little-endian, for
 * x86-64 or aarch64. Hostile input.
 *
 * This layer reads ELF files and finds their debug data. Unwind tables (src/unwind) and names (src/symbols) are
 * made from what it finds.
 *
 * libelf reads with pread, not with mmap, unless sf_elf_map says so: a file that is truncated
 * meanwhile must not end stillframe with SIGBUS. Only regular files are read: nothing here waits for a fifo or a device.
 */
#ifndef SF_ELF_FILE_H
#define SF_ELF_FILE_H

#include <gelf.h>

#include "base/error.h"
#include "base/vec.h"
#include "elf/cfi_entries.h"
#include "elf/facts.h"
#include "elf/work.h"
#include "frozen/arch.h"

struct sf_elf_piece {
	uint8_t *bytes;            /* from mmap */
	size_t size;
};

struct sf_elf {
	Elf *elf;                  /* NULL: not open */
	int fd;                    /* -1: in memory */
	bool owns_fd;
	void *map;                 /* NULL: read with pread */
	uint64_t size;             /* bytes in the file */
	const struct sf_arch *arch;
	size_t n_segments;
	uint64_t entry;            /* the program's first instruction; a library's means nothing */
	uint64_t code_start, code_end; /* what executable segments span, without the file's header; equal: there are none */
	uint8_t build_id[SF_ELF_MAX_BUILD_ID]; /* zero-padded */
	size_t build_id_size;
	void *memory;              /* of a file in memory, from malloc */
	SF_VEC(struct sf_elf_piece) pieces; /* that were read; they stay the same, whatever happens to the
				    * file */
	bool unpacked;             /* some section was; libelf has changed its header */
	bool no_memory;            /* something could not be read for lack of memory; the file may
				    * have sections that seem to be missing */
	struct sf_work *work;      /* the limit that sections which are read count against; NULL: none */
	uint64_t n_read;           /* bytes of sections that are in memory */
	bool in_turn, ends_turn;   /* read in turn with other large files; this one ends the turn */
	bool limited;              /* something was not read: work on files has come to its end */
};

struct sf_section {
	const uint8_t *bytes;      /* valid until the file is closed */
	size_t size;
	uint64_t address;
};

/* Whether libelf may begin with this file: what it reads at once is bounded. */
bool sf_elf_may_begin(int fd, struct sf_error *err);

/* Opens the file behind `fd`, which stays the caller's. *ret is zeroed when it fails. */
bool sf_elf_open(int fd, struct sf_elf *ret, struct sf_error *err);

/* Opens by path, which may come from outside (base/foreign_file.h). */
bool sf_elf_open_path(const char *path, struct sf_elf *ret, struct sf_error *err);

/*
 * The same of a file with nothing but debug data, whatever its header says it is: what several files share is an object file
 * by dwz(1), without segments, so that its build id is not read here.
 */
bool sf_elf_open_data(const char *path, struct sf_elf *ret, struct sf_error *err);

/*
 * Maps an open file privately; all later reads use the mapping. This helps a caller that needs little of a
 * large file. It also helps with libdw, which then has neither a descriptor nor a folder in which it could
 * look for other files. If the file is truncated, the process ends with SIGBUS. Sections that
 * were handed out before are gone. False: nothing has changed.
 */
bool sf_elf_map(struct sf_elf *elf);

/*
 * Copies an open file into memory; all later reads use the copy, which stays the same whatever happens to the file.
 * Also what was found when it was opened is found again, in the copy, but for the build id. Sections that were handed
 * out before are gone. Not for a file whose work is limited. False: nothing has changed.
 */
bool sf_elf_load(struct sf_elf *elf);

/* Opens a file in memory, and takes `bytes`, which is from malloc, also on failure. */
bool sf_elf_open_memory(void *bytes, size_t size, struct sf_elf *ret, struct sf_error *err);

void sf_elf_close(struct sf_elf *elf); /* of a zeroed one too */

/* `size` bytes, not 0, at `offset` of the file, valid until it is closed; NULL if they cannot be had. */
const uint8_t *sf_elf_read(struct sf_elf *elf, uint64_t offset, size_t size);

/*
 * The first segment of this type; and the segment that is loaded with `address`: in its code (PF_X), or its bytes of
 * the file (0).
 */
bool sf_elf_find_segment(const struct sf_elf *elf, uint32_t type, GElf_Phdr *ret);
bool sf_elf_find_loaded(const struct sf_elf *elf, uint64_t address, uint32_t flags, GElf_Phdr *ret);

/*
 * The first section with this name that has bytes in the file, or NULL. Of an Elf, because split
 * debug files are opened by libdw.
 */
Elf_Scn *sf_elf_find_section(Elf *elf, const char *name, GElf_Shdr *header_ret);

/*
 * Counts bytes that are going to be in memory, or to be gone through (`kept` false). False when they
 * are too many for one file; false, and `limited`, when they are for all.
 */
bool sf_elf_spend(struct sf_elf *elf, uint64_t bytes, bool kept);

/* A file that is read for the sake of another one is counted like a part of it. */
void sf_elf_share_work(const struct sf_elf *elf, struct sf_elf *other);

/*
 * The first section with this name that has bytes in the file, decompressed if it is compressed;
 * false if there is none.
 */
bool sf_elf_section(struct sf_elf *elf, const char *name, struct sf_section *ret);

/*
 * The .eh_frame: by its section, or where that is missing through PT_GNU_EH_FRAME, which gives its
 * start but not its size. False if there is none.
 */
bool sf_elf_eh_frame(struct sf_elf *elf, struct sf_cfi *ret);

/* .debug_frame, or false. */
bool sf_elf_debug_frame(struct sf_elf *elf, struct sf_cfi *ret);

#endif
