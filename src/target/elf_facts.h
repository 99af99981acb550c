/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few facts of an ELF file that a map needs: its build id, and where its code is linked
 * to run. Read from the program headers alone, so that copies from memory work too. Hostile input.
 */
#ifndef SF_TARGET_ELF_FACTS_H
#define SF_TARGET_ELF_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *size_ret is 0 when there is none; at most 32 bytes (SF_MAX_BUILD_ID). */
void sf_elf_build_id(int fd, uint8_t ret[32], size_t *size_ret);

/*
 * The address at which the file's own headers want the byte at `offset` (of an executable
 * segment) to be; false when no segment holds it.
 */
bool sf_elf_address(int fd, uint64_t offset, uint64_t *ret);

#endif
