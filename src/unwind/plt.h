/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by rule of thumb for procedure linkage tables that come without unwind data. */
#ifndef SF_UNWIND_PLT_H
#define SF_UNWIND_PLT_H

#include "elf/file.h"
#include "unwind/rows.h"

#define SF_PLT_SECTIONS 4

/* The file's PLT sections; how many. Their bytes are valid until it is closed. */
size_t sf_plt_sections(struct sf_elf *elf, struct sf_section ret[SF_PLT_SECTIONS]);

/* Adds rows, marked SF_RULES_GUESS, for these sections, and settles them as one source. */
bool sf_plt_read(const struct sf_section *sections, size_t n, const struct sf_arch *arch,
		 struct sf_rows *rows, struct sf_error *err);

#endif
