/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of Haskell by GHC. Signal-safe. It has no rules, keeps its stack in rbp, and goes on by jumps through registers, so
 * its instructions often show no return. But it leaves rsp alone, from the jump of the runtime's StgRun into it to StgReturn
 * (rts/StgCRun.c). So any code of it that shows a way out shows it for all, such as the runtime's, to which Haskell code goes
 * when its heap is full.
 *
 * r13 is the register BaseReg (REG_Base, includes/stg/MachRegs.h), the address of a StgRegTable. A StgFunTable lies before that
 * (struct Capability_, rts/Capability.h): stgEagerBlackholeInfo, stgGCEnter1, stgGCFun (includes/stg/Regs.h).
 */
#include "frozen/arch.h"
#include "frozen/exit_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

#define BASE_REG 13
#define FUN_TABLE 24
#define RESERVED_C_STACK 16384 /* bytes that StgRun takes: RESERVED_C_STACK_BYTES, includes/rts/Constants.h */

bool sf_x86_common_code(const struct sf_reader *reader, const struct sf_regs *regs, uint64_t *pc_ret, int32_t *least_ret)
{
	uint64_t table[FUN_TABLE / 8];

	if (!sf_reg_known(regs, BASE_REG) || regs->r[BASE_REG] % 8 || !sf_read(reader, table, regs->r[BASE_REG] - FUN_TABLE, FUN_TABLE))
		return false;
	*pc_ret = table[1];
	*least_ret = RESERVED_C_STACK;
	return true;
}
