/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame that nobody called. A return address stands behind a call, in the same function as the
 * call or, behind a call that never returns, in the next. Where the byte before it belongs to no
 * function and a function starts exactly there, it was put on the stack by hand: the first frame of
 * a context that makecontext(3) made, for one (glibc's __start_context). Nothing is above it.
 */
#include "frozen/walk.h"

#include "frozen/frozen.h"

enum sf_step sf_step_first(struct sf_cursor *cursor, const struct sf_region *region,
			   enum sf_end *why)
{
	uint64_t address;

	(void)why;
	if (!region || !region->table || cursor->exact)
		return SF_STEP_NOT_MINE;
	address = cursor->regs.pc - region->bias;
	if (!sf_table_starts_row(region->table, address) ||
	    sf_table_find(region->table, address - 1) || !sf_table_find(region->table, address))
		return SF_STEP_NOT_MINE;
	return SF_STEP_ROOT;
}
