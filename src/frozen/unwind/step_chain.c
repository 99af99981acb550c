/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepper for frames of a stack of which there is no copy, by the addresses that the kernel found there when the sample was
 * taken (sf_still.chain). Signal-safe.
 *
 * The kernel follows the frame pointers. It has no proof of a frame, and does not see a function that made none. So only Go's
 * code is believed, whose functions keep the frame pointer, and only return addresses behind a call.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

static const uint64_t *chain_end(const struct sf_still *still)
{
	return still->chain + still->n_chain;
}

bool sf_chain_find(struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;

	cursor->chain = still->chain;
	while (cursor->chain && cursor->chain < chain_end(still)) {
		if (*cursor->chain++ == cursor->regs.pc)
			return true;
	}
	cursor->chain = NULL;
	return false;
}

bool sf_chain_next(const struct sf_cursor *cursor, uint64_t *ret)
{
	if (!cursor->chain || cursor->chain == chain_end(cursor->still))
		return false;
	*ret = *cursor->chain;
	return true;
}

void sf_chain_take(struct sf_cursor *cursor, uint64_t pc)
{
	cursor->regs.pc = pc;
	cursor->regs.known = 0;
	cursor->passed = 0;
	cursor->exact = false;
	cursor->via = SF_VIA_CHAIN;
}

static bool is_in_go(const struct sf_still *still, uint64_t pc)
{
	const struct sf_region *region = sf_frame_region(still, pc, false);

	return region && region->table && region->table->header->flags & SF_TABLE_GO;
}

/* The first frame of a goroutine is behind no call, and its address was stored there by hand: the caller of its first function. */
enum sf_step sf_step_chain(struct sf_cursor *cursor, const struct sf_region *region, enum sf_end *why)
{
	const struct sf_reader code = sf_reader_outside(&cursor->still->memory);
	uint64_t pc, target;

	(void)region;
	if (!cursor->chain)
		return SF_STEP_NOT_MINE;
	*why = SF_END_OTHER_STACK;
	if (!sf_chain_next(cursor, &pc) || !is_in_go(cursor->still, pc) ||
	    !(cursor->still->arch->is_behind_call(&code, pc, &target) || sf_is_goexit(cursor->still, pc)))
		return SF_STEP_FAILED;
	cursor->chain++;
	sf_chain_take(cursor, pc);
	return SF_STEP_TAKEN;
}
