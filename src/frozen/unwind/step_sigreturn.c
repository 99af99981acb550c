/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping out of the kernel's signal trampoline, which is recognised by its bytes: all registers
 * of the interrupted code are in the frame that the kernel made. The interrupted code may be on
 * another stack, above or below, so sp is not compared; the depth bounds the walk.
 */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

enum sf_step sf_step_sigreturn(struct sf_cursor *cursor, const struct sf_region *region,
			       enum sf_end *why)
{
	const struct sf_arch *arch = cursor->still->arch;
	const struct sf_reader *memory = &cursor->still->memory;
	const uint64_t sp = cursor->regs.r[arch->sp];

	if (!region || !sf_is_sigreturn(cursor->still, cursor->regs.pc))
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
