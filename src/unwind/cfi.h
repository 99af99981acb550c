/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all functions that a section of call frame information describes. */
#ifndef SF_UNWIND_CFI_H
#define SF_UNWIND_CFI_H

#include <stdbool.h>

#include "base/error.h"
#include "elf/cfi_entries.h"
#include "frozen/arch.h"
#include "unwind/rows.h"

/*
 * Adds the rows of all functions that the section describes, and settles them as one source. An
 * entry that makes no sense is left out; one whose length makes no sense also hides those
 * behind it. False only when memory ran out, or cfi->work ended.
 */
bool sf_cfi_read(const struct sf_cfi *cfi, const struct sf_arch *arch, struct sf_rows *rows,
		 struct sf_error *err);

#endif
