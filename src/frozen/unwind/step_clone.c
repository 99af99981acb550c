/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call that makes a thread returns twice, the second time on a stack that nobody called
 * anything on. So glibc's rules for clone and clone3 end before its instruction and begin again
 * where only the new thread goes ("End FDE now, because in the child the unwind info will be
 * wrong": sysdeps/unix/sysv/linux/x86_64/clone3.S, aarch64/clone3.S). Where both return, the
 * result tells them apart. The caller's frame is what it was before the call, by the row that
 * ended there; of the new thread, which nobody can have seen asleep yet, it is the first frame.
 *
 * Without this the new thread would be walked by the frame pointer that it has from the caller.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

#define MAX_GAP 32   /* bytes of the call, its checks and the return: 10 and 24 */

/* Whether the thread stands in a gap that begins with a system call; *ret: the row before it. */
static bool is_behind_clone(const struct sf_cursor *cursor, const struct sf_region *region,
			    struct sf_row_range *gap, const struct sf_rules **ret)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const uint64_t address = cursor->regs.pc - region->bias;

	if (!sf_table_range(region->table, address, gap) || !(gap->rules->flags & SF_RULES_NONE) ||
	    address - gap->start >= MAX_GAP)
		return false;
	*ret = sf_table_find(region->table, gap->start - 1);
	return *ret && still->arch->is_system_call(&code, gap->start + region->bias);
}

static bool is_new_thread(const struct sf_cursor *cursor)
{
	const unsigned result = cursor->still->arch->result;

	return sf_reg_known(&cursor->regs, result) && cursor->regs.r[result] == 0;
}

enum sf_step sf_step_clone(struct sf_cursor *cursor, const struct sf_region *region,
			   enum sf_end *why)
{
	struct sf_row_range gap;
	const struct sf_rules *rules;

	if (!region || !region->table || !cursor->exact ||
	    !is_behind_clone(cursor, region, &gap, &rules))
		return SF_STEP_NOT_MINE;
	/* The call itself has still to be made where the gap begins. */
	if (cursor->regs.pc - region->bias != gap.start && is_new_thread(cursor))
		return SF_STEP_ROOT;
	return sf_step_by_rules(cursor, region->table, rules, why);
}
