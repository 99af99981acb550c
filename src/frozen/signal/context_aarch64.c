/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context that the kernel passes to a signal handler on aarch64: its registers (asm/sigcontext.h). A call that
 * failed cannot be made again: its first argument is overwritten by the result.
 */
#include <ucontext.h>

#include "frozen/signal/context.h"

#include "frozen/frozen.h"

void sf_context_registers(const void *ucontext, struct sf_regs *ret)
{
	const ucontext_t *context = ucontext;

	ret->known = 0;
	for (unsigned i = 0; i < 31; i++)
		sf_reg_set(ret, i, context->uc_mcontext.regs[i]);
	sf_reg_set(ret, 31, context->uc_mcontext.sp);
	ret->pc = context->uc_mcontext.pc;
}

bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret)
{
	(void)ucontext, (void)pc_ret;
	return false;
}

void sf_context_give_way(const struct sf_handler_config *config, void *ucontext)
{
	(void)config, (void)ucontext;
}

void sf_context_leave_interrupted(void *ucontext)
{
	(void)ucontext;
}

bool sf_context_mend(const struct sf_handler_config *config, void *ucontext, const uint8_t *code, size_t n_code)
{
	(void)config, (void)ucontext, (void)code, (void)n_code;
	return false;
}
