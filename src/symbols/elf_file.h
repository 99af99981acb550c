/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One open ELF file, and the few questions about it that several sources of names ask.
 * For src/symbols only.
 */
#ifndef SF_SYMBOLS_ELF_FILE_H
#define SF_SYMBOLS_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_elf_file {
	Elf *elf;       /* NULL: not open */
	int fd;         /* -1: from memory */
	void *memory;   /* what `elf` was made from, or NULL */
	uint64_t size;  /* bytes in the file */
};

/* Takes `fd`, also when it fails because this is no regular file or no ELF image. */
bool sf_elf_file_take(int fd, struct sf_elf_file *ret);

/* Opens by path; never blocks on a fifo or a device. */
bool sf_elf_file_open(const char *path, struct sf_elf_file *ret);

/* Takes `memory` (from malloc), also when it fails. */
bool sf_elf_file_take_memory(void *memory, size_t size, struct sf_elf_file *ret);

void sf_elf_file_close(struct sf_elf_file *file); /* of a zeroed one too */

/* The section with this name, or NULL. */
Elf_Scn *sf_elf_file_section(Elf *elf, const char *name, GElf_Shdr *header_ret);

/* Whether `address` is in a segment that is loaded to be run. */
bool sf_elf_is_code(Elf *elf, uint64_t address);

/* Whether both have a build id, and the same one; `unknown` when either has none. */
enum sf_same { SF_SAME_NO, SF_SAME_YES, SF_SAME_UNKNOWN };
enum sf_same sf_elf_same_build(Elf *a, Elf *b);

#endif
