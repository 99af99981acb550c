/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information, as a section holds it: entries that describe functions (FDEs),
 * each with a common part that it shares with others (a CIE). DWARF 5, section 6.4.1, for
 * .debug_frame; LSB Core 5.0, section 10.6, for .eh_frame, which differs in small ways.
 *
 * This file parses the entries. src/unwind interprets their instructions.
 */
#ifndef SF_ELF_CFI_ENTRIES_H
#define SF_ELF_CFI_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/memory/bytes.h"
#include "elf/work.h"

/*
 * Pointers as .eh_frame and .eh_frame_hdr encode them: a byte says how a value is stored
 * and what it is relative to (LSB Core 5.0, section 10.5.1, "DWARF Exception Header Encoding").
 */

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

/* A section's bytes, from a file that is not trusted. */
struct sf_cfi {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;      /* of the first byte, unrelocated */
	bool eh;               /* .eh_frame, not .debug_frame */
	bool ends_at_zero;     /* the size is only a bound: an entry of length 0 ends it */
	uint64_t text, data;   /* bases for DW_EH_PE_textrel and DW_EH_PE_datarel */
	struct sf_work *work;  /* for who goes through it; NULL: without a limit */
};

/* A common information entry, decoded. */
struct sf_cie {
	uint64_t code_align;
	int64_t  data_align;
	uint64_t return_column;   /* DWARF number of the return address */
	uint8_t  encoding;        /* DW_EH_PE_* of addresses in the FDE */
	uint8_t  data_encoding;   /* DW_EH_PE_* of the address of the language's data; DW_EH_PE_omit: there is none */
	uint8_t  segment_size;    /* of a segment selector in front of addresses; usually 0 */
	bool     has_augmentation_data;
	bool     signal;          /* its functions are signal frames */
	struct sf_pointers pointers;
	struct sf_bytes program;  /* the initial instructions, 1 KiB at most */
};

/* A function. */
struct sf_fde {
	uint64_t cie;             /* offset of its CIE in the section */
	uint64_t start, end;      /* unrelocated addresses; may be equal */
	uint64_t lsda;            /* address of the language's data for it (exceptions); 0: none, or not in the file */
	struct sf_bytes program;  /* its instructions */
};

/* The place in a section where the next FDE is looked for. Zero it to begin. */
struct sf_cfi_cursor {
	uint64_t offset;
	uint64_t cie;             /* of the FDE that was found */
	struct sf_bytes bytes;    /* its own, behind the id */
};

/*
 * Moves on to the next FDE, in the order of the file; false behind the last one. An entry whose
 * length makes no sense ends the section.
 */
bool sf_cfi_next(const struct sf_cfi *cfi, struct sf_cfi_cursor *cursor);

/* Decodes the CIE at `offset`; false if there is none, or none that makes sense. */
bool sf_cie_read(const struct sf_cfi *cfi, uint64_t offset, struct sf_cie *ret);

/* Decodes the FDE at the cursor, whose CIE is `cie`; false if it makes no sense. */
bool sf_fde_read(const struct sf_cfi_cursor *cursor, const struct sf_cie *cie, struct sf_fde *ret);

#endif
