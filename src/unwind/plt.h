/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by rule of thumb for procedure linkage tables that come without unwind data. */
#ifndef SF_UNWIND_PLT_H
#define SF_UNWIND_PLT_H

#include "elf/file.h"
#include "unwind/rows.h"

/* Adds rows, marked SF_RULES_GUESS, for all PLT sections, and settles them as one source. */
bool sf_plt_read(struct sf_elf *elf, struct sf_rows *rows, struct sf_error *err);

#endif
