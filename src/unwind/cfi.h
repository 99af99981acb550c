/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information, as a section holds it: entries that describe functions (FDEs),
 * each with a common part that it shares with others (a CIE). DWARF 5, section 6.4.1, for
 * .debug_frame; LSB Core 5.0, section 10.6, for .eh_frame, which differs in small ways.
 */
#ifndef SF_UNWIND_CFI_H
#define SF_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/arch.h"
#include "unwind/rows.h"

/* A section's bytes, from a file that nobody vouches for. */
struct sf_cfi {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;      /* of the first byte, unrelocated */
	bool eh;               /* .eh_frame, not .debug_frame */
	bool ends_at_zero;     /* the size is only a bound: an entry of length 0 ends it */
	uint64_t text, data;   /* bases for DW_EH_PE_textrel and DW_EH_PE_datarel */
};

/*
 * Adds the rows of all functions that the section describes, and settles them as one source. An
 * entry that makes no sense is left out; one whose length makes no sense also hides those
 * behind it. False only when memory ran out.
 */
bool sf_cfi_read(const struct sf_cfi *cfi, const struct sf_arch *arch, struct sf_rows *rows,
		 struct sf_error *err);

#endif
