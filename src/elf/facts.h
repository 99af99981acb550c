/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few facts of an ELF file that a map needs: its build id, and where its code is linked
 * to run. Read from the program headers alone, without libelf: a dozen small reads, and copies
 * from memory work too. Hostile input.
 */
#ifndef SF_ELF_FACTS_H
#define SF_ELF_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_ELF_MAX_BUILD_ID 32

/* *size_ret is 0 when there is none. */
void sf_elf_build_id(int fd, uint8_t ret[SF_ELF_MAX_BUILD_ID], size_t *size_ret);

/*
 * An executable segment: bytes [offset, offset + size) of the file, linked to run from `address`
 * on.
 */
struct sf_elf_code {
	uint64_t offset, size, address;
};

/* The executable segments in the order of the file, at most `capacity`; how many. */
size_t sf_elf_code(int fd, struct sf_elf_code *ret, size_t capacity);

/*
 * The address at which the file's own headers want the byte at `offset` to be, where a mapping begins; false when no segment
 * holds it. The page with the end of one segment may be that with the start of the next: it is mapped twice, and as a
 * mapping's first page it is the next one's.
 */
bool sf_elf_code_address(const struct sf_elf_code *code, size_t n, uint64_t offset, uint64_t *ret);

#endif
