/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the entries of a section with call frame information into rows.
 *
 * Entries are read in the order of the file, each once, and their rows go straight to the
 * collector: memory does not grow with the section. CIEs are decoded when an FDE first needs
 * them and kept in a small direct-mapped cache; linkers leave few of them, next to their FDEs.
 */
#include "unwind/cfi.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define N_CACHED 64

struct cached {
	bool used, good;
	uint64_t offset;
	struct sf_cie cie;
	struct sf_cfa_state start; /* of all its functions */
};

struct parser {
	const struct sf_cfi *cfi;
	const struct sf_arch *arch;
	struct sf_rows *rows;
	bool no_memory;
	bool limited;             /* it is too much work */
	struct cached cache[N_CACHED];
};

static bool load_cie(struct parser *parser, uint64_t offset, struct cached *ret)
{
	enum sf_cfa_result result;

	if (!sf_cie_read(parser->cfi, offset, &ret->cie))
		return false;
	parser->limited |= !sf_work_spend(parser->cfi->work, sf_bytes_left(&ret->cie.program));
	result = sf_cfa_start(parser->arch, &ret->cie, parser->rows, &ret->start);
	parser->no_memory = result == SF_CFA_NO_MEMORY;
	return result == SF_CFA_DONE;
}

/* The CIE at `offset`, or NULL if there is no good one. Valid until the next call. */
static const struct cached *find_cie(struct parser *parser, uint64_t offset)
{
	struct cached *cached = &parser->cache[(offset ^ offset >> 6) / 4 % N_CACHED];

	if (!cached->used || cached->offset != offset) {
		cached->good = load_cie(parser, offset, cached);
		cached->offset = offset;
		cached->used = true;
	}
	return cached->good ? cached : NULL;
}

static void read_fde(struct parser *parser, const struct sf_cfi_cursor *cursor)
{
	const struct cached *common = find_cie(parser, cursor->cie);
	enum sf_cfa_result result;
	struct sf_fde fde;

	if (!common || !sf_fde_read(cursor, &common->cie, &fde) ||
	    !sf_rows_begin(parser->rows, fde.start, fde.end))
		return;
	result = sf_cfa_run(parser->arch, &common->cie, &common->start, parser->rows, &fde);
	if (result == SF_CFA_NO_MEMORY || !sf_rows_end(parser->rows, result == SF_CFA_DONE))
		parser->no_memory = true;
}

bool sf_cfi_read(const struct sf_cfi *cfi, const struct sf_arch *arch, struct sf_rows *rows,
		 struct sf_error *err)
{
	SF_CLEANUP(free) struct parser *parser = calloc(1, sizeof(*parser));
	struct sf_cfi_cursor cursor = { 0 };

	if (!parser)
		return sf_fail_memory(err);
	parser->cfi = cfi;
	parser->arch = arch;
	parser->rows = rows;
	while (!parser->no_memory && !parser->limited && sf_cfi_next(cfi, &cursor)) {
		read_fde(parser, &cursor);
		parser->limited |= !sf_work_goes_on(cfi->work);
	}
	if (parser->limited)
		return sf_work_fail(cfi->work, err);
	if (parser->no_memory || !sf_rows_settle(rows))
		return sf_fail_memory(err);
	return true;
}
