/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of call frame instructions (DWARF 5, section 6.4.2): a small machine that
 * goes through a function's addresses and says which rules hold from where on.
 */
#ifndef SF_UNWIND_CFA_H
#define SF_UNWIND_CFA_H

#include "frozen/arch.h"
#include "unwind/pointer.h"
#include "unwind/rows.h"

/* What instructions change, and DW_CFA_remember_state keeps. */
struct sf_cfa_state {
	struct sf_rules rules;
	struct sf_rule plain;     /* the last CFA that was a register and an offset */
};

/* What a function's instructions depend on: its common information entry, decoded. */
struct sf_cie {
	uint64_t code_align;
	int64_t  data_align;
	uint64_t return_column;   /* DWARF number of the return address */
	uint8_t  encoding;        /* DW_EH_PE_* of addresses in the FDE */
	uint8_t  segment_size;    /* of a segment selector in front of addresses; usually 0 */
	bool     has_augmentation_data;
	struct sf_pointers pointers;
	struct sf_bytes program;  /* the initial instructions */
	uint32_t flags;           /* enum sf_rules_flags of all its functions */
	struct sf_cfa_state start; /* what the program leads to: where every function starts */
};

enum sf_cfa_result {
	SF_CFA_DONE,
	SF_CFA_BAD,       /* not valid, or nothing that this machine knows */
	SF_CFA_NO_MEMORY,
};

/* Runs the initial instructions of `cie`, which is complete but for cie->start, into that. */
enum sf_cfa_result sf_cfa_start(const struct sf_arch *arch, struct sf_cie *cie,
				struct sf_rows *rows);

/*
 * Runs a function's instructions, for addresses from `start` up to `end`, and adds its rows. To be
 * called between sf_rows_begin and sf_rows_end.
 */
enum sf_cfa_result sf_cfa_run(const struct sf_arch *arch, const struct sf_cie *cie,
			      struct sf_rows *rows, struct sf_bytes program, uint64_t start,
			      uint64_t end);

#endif
