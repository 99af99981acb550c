/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointers as .eh_frame and .eh_frame_hdr encode them: a byte says how a value is stored
 * and what it is relative to (LSB Core 5.0, section 10.5.1, "DWARF Exception Header Encoding").
 */
#ifndef SF_ELF_POINTER_H
#define SF_ELF_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/memory/bytes.h"

/* The base addresses for encoded pointers in one section. */
struct sf_pointers {
	const uint8_t *start;   /* of the section's bytes */
	uint64_t address;       /* of the section, unrelocated */
	uint64_t text, data;    /* bases of DW_EH_PE_textrel and DW_EH_PE_datarel */
	size_t address_size;    /* of a DW_EH_PE_absptr: 4 or 8 */
};

/*
 * Reads an address. False if the encoding is unknown or "omit", or if the address is stored elsewhere
 * (DW_EH_PE_indirect). The dynamic linker fills such a slot, so the file does not contain the address.
 * After a failure the cursor may be anywhere.
 */
bool sf_pointer_read(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding,
		     uint64_t *ret);

/* The bare value, relative to nothing, as for a range's length. False as above. */
bool sf_pointer_value(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding,
		      uint64_t *ret);

/* Skips a pointer, indirect ones too. False if the encoding is unknown. */
bool sf_pointer_skip(const struct sf_pointers *pointers, struct sf_bytes *bytes, uint8_t encoding);

#endif
