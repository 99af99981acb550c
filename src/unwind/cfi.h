/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information becomes rows: the entries of a section, and the interpreter of their
 * instructions (DWARF 5, section 6.4.2), a small machine that goes through a function's addresses and
 * says which rules hold from where on.
 */
#ifndef SF_UNWIND_CFI_H
#define SF_UNWIND_CFI_H

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

/* The state that instructions change, and that DW_CFA_remember_state saves. */
struct sf_cfa_state {
	struct sf_rules rules;
	struct sf_rule plain;     /* the last CFA that was a register and an offset */
	struct sf_rule sp;        /* SF_HOW_SAME: it has none, and the CFA is the caller's sp */
};

enum sf_cfa_result {
	SF_CFA_DONE,
	SF_CFA_BAD,       /* not valid, or not supported */
	SF_CFA_NO_MEMORY,
};

/* Runs the initial instructions of `cie`: what they lead to is where every function starts. */
enum sf_cfa_result sf_cfa_start(const struct sf_arch *arch, const struct sf_cie *cie,
				struct sf_rows *rows, struct sf_cfa_state *ret);

/*
 * Runs a function's instructions from `state`, where those of its `cie` led to, and adds its rows.
 * To be called between sf_rows_begin and sf_rows_end.
 */
enum sf_cfa_result sf_cfa_run(const struct sf_arch *arch, const struct sf_cie *cie,
			      const struct sf_cfa_state *state, struct sf_rows *rows,
			      const struct sf_fde *fde);

/* The rules of a row in this state, of which the CFA is the caller's sp. False when memory ran out. */
bool sf_cfa_rules(struct sf_rows *rows, const struct sf_arch *arch, const struct sf_cfa_state *state, struct sf_rules *ret);

#endif
