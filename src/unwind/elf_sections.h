/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file's bytes, as far as unwinding needs them. 64-bit little-endian x86-64 and aarch64
 * files only. libelf reads with pread, not with mmap: a file that somebody
 * truncates meanwhile must not end stillframe with SIGBUS, and only a few sections are wanted.
 */
#ifndef SF_UNWIND_ELF_SECTIONS_H
#define SF_UNWIND_ELF_SECTIONS_H

#include <gelf.h>

#include "base/error.h"
#include "base/vec.h"
#include "frozen/arch.h"
#include "unwind/cfi.h"

#define SF_ELF_MAX_BUILD_ID 32

struct sf_elf {
	int fd;                    /* -1: in memory */
	bool owns_fd;
	Elf *elf;
	const struct sf_arch *arch;
	size_t n_segments;
	uint64_t code_start, code_end; /* what executable segments span; equal: there are none */
	uint8_t build_id[SF_ELF_MAX_BUILD_ID]; /* zero-padded */
	size_t build_id_size;
	SF_VEC(void *) owned;      /* freed by close */
	bool no_memory;            /* something could not be read for want of memory: what looks
				    * missing may be there */
};

struct sf_section {
	const uint8_t *bytes;      /* valid until the file is closed */
	size_t size;
	uint64_t address;
};

/* Opens the file behind `fd`, which stays the caller's. sf_elf_close in any case of success. */
bool sf_elf_open(int fd, struct sf_elf *ret, struct sf_error *err);

/* Opens a file in memory, and takes `bytes`, which is from malloc, also on failure. */
bool sf_elf_open_memory(void *bytes, size_t size, struct sf_elf *ret, struct sf_error *err);

void sf_elf_close(struct sf_elf *elf);

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
