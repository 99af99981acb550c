/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for a first frame that no call made: the walk ends there. Signal-safe. A normal return
 * address is behind a call, in the same function, or, behind a call that never returns, in the next
 * function. If the byte before the address belongs to no function, and a function starts exactly at
 * the address, then other code has stored the address on the stack. One example is the first frame of a context
 * from makecontext(3) (glibc's __start_context). No frame is above such a frame.
 */
#include "frozen/unwind/walk.h"

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
