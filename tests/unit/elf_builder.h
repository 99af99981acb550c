/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small ELF files, from a description: segments and sections with their bytes. Enough for what
 * reads headers, sections, notes and unwind data; nothing in them runs.
 */
#ifndef TESTS_UNIT_ELF_BUILDER_H
#define TESTS_UNIT_ELF_BUILDER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_part {
	const char *name;       /* of the section; NULL: only a segment */
	uint32_t segment;       /* PT_* if it is one, too; else 0 */
	uint32_t segment_flags; /* PF_* */
	uint64_t section_flags; /* SHF_* */
	uint64_t address;
	uint64_t memory_size;   /* of the segment; 0: as many as there are bytes */
	const void *bytes;
	size_t size;
};

struct elf_description {
	uint16_t machine;
	uint64_t entry;
	bool without_sections;  /* no section headers at all */
	const struct elf_part *parts;
	size_t n_parts;
};

/* The file's bytes, from malloc. */
void *elf_build(const struct elf_description *description, size_t *size_ret);

/* The same as the descriptor of a file without a name. */
int elf_build_fd(const struct elf_description *description);

#endif
