/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines from a portable PDB ("Portable PDB v1.0: Format Specification"), which is opened as
 * metadata (metadata.h). The same rules hold: hostile bytes of the caller, nothing allocated.
 */
#ifndef SF_RUNTIME_CORECLR_PDB_H
#define SF_RUNTIME_CORECLR_PDB_H

#include "base/text.h"
#include "runtime/coreclr/image.h"
#include "runtime/coreclr/metadata.h"

/* Whether the PDB is the one that the assembly names. */
bool sf_clr_pdb_is(const struct sf_clr_metadata *pdb, const struct sf_clr_pdb_name *name);

struct sf_clr_line {
	uint32_t document; /* a row of the table of documents */
	uint32_t line;     /* from 1; 0: unknown */
};

/* The line of the statement at an offset in the IL of a MethodDef row. False: it is not known. */
bool sf_clr_pdb_line(const struct sf_clr_metadata *pdb, uint32_t method, uint32_t il_offset,
		     struct sf_clr_line *ret);

/* The path of a source file; cut to `size`. "": not known. */
void sf_clr_pdb_document(const struct sf_clr_metadata *pdb, uint32_t document, char *ret,
			 size_t size);

/* The offset, in the IL of an asynchronous MoveNext method, of the await that its state machine's state is the number of, from 0.
 * False: it is not known. */
bool sf_clr_pdb_await(const struct sf_clr_metadata *pdb, uint32_t move_next, uint32_t state, uint32_t *il_ret);

#endif
