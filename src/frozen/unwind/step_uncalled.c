/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steppers for frames that no call made: behind the system call that makes a thread, in a signal's
 * trampoline, and the first frame of a context. Signal-safe.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

/*
 * The system call that makes a thread returns twice, the second time on a stack that nobody called
 * anything on. So glibc's rules for clone and clone3 end before its instruction and begin again
 * where only the new thread goes ("End FDE now, because in the child the unwind info will be
 * wrong": sysdeps/unix/sysv/linux/x86_64/clone3.S, aarch64/clone3.S). Where both return, the
 * result distinguishes them. The caller's frame is what it was before the call, by the row that
 * ended there; of the new thread, which nobody can have seen asleep yet, it is the first frame.
 *
 * Without this the new thread would be walked by the frame pointer that it has from the caller.
 */
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

/* The instruction behind the trampoline's system call, where a thread stands that is in the call. No rules cover it. */
static bool is_in_sigreturn(const struct sf_cursor *cursor)
{
	const struct sf_still *still = cursor->still;
	const struct sf_reader code = sf_reader_outside(&still->memory);
	const uint64_t call = cursor->regs.pc - still->arch->syscall_size;

	return cursor->exact && still->arch->is_system_call(&code, call) && sf_is_sigreturn(still, call);
}

/*
 * The kernel's signal trampoline is recognised by its bytes: all registers of the interrupted code are in
 * the frame that the kernel made. The interrupted code may be on another stack, above or below, so sp is
 * not compared; the depth bounds the walk.
 */
enum sf_step sf_step_sigreturn(struct sf_cursor *cursor, const struct sf_region *region,
			       enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader *memory = &cursor->still->memory;
	const uint64_t sp = cursor->regs.r[arch->sp];

	if (!region || !(sf_is_sigreturn(cursor->still, cursor->regs.pc) || is_in_sigreturn(cursor)))
		return SF_STEP_NOT_MINE;
	if (!sf_reg_known(&cursor->regs, arch->sp)) {
		*why = SF_END_REGISTER;
		return SF_STEP_FAILED;
	}
	if (!arch->sigreturn(memory, &cursor->regs)) {
		*why = sf_why_unread(memory, sp, arch->sigframe_size);
		return SF_STEP_FAILED;
	}
	cursor->exact = true;
	cursor->via = SF_VIA_SIGNAL;
	return SF_STEP_TAKEN;
}

/*
 * A first frame that no call made: the walk ends there. A normal return address is behind a call, in the
 * same function, or, behind a call that never returns, in the next function. If the byte before the address
 * belongs to no function, and a function starts exactly at the address, then other code has stored the
 * address on the stack. One example is the first frame of a context from makecontext(3) (glibc's
 * __start_context). No frame is above such a frame.
 */
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
