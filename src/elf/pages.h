/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of large sections, each in pages of its own and not in malloc's memory. The agent reads such sections
 * inside a watched program, whose malloc would keep megabytes of memory after a free.
 *
 * Bytes that were read stay the same, whatever happens to the file.
 */
#ifndef SF_ELF_PAGES_H
#define SF_ELF_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sf_elf_piece {
	uint64_t offset;
	size_t size;
	uint8_t *bytes;
};

/* Zeroed: none were read. */
struct sf_elf_pages {
	SF_VEC(struct sf_elf_piece) pieces;
	bool no_memory;      /* something could not be read for want of memory */
};

/* `size` bytes, not 0, at `offset` of the file behind `fd`, valid until sf_elf_pages_free; NULL if they cannot be had. */
const uint8_t *sf_elf_pages_read(struct sf_elf_pages *pages, int fd, uint64_t offset, size_t size);
void sf_elf_pages_free(struct sf_elf_pages *pages);

#endif
