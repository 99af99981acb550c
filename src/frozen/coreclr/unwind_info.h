/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNWIND_INFO: how managed code on x86-64 says where its frame is. The format is that of Windows x64 ("x64 exception
 * handling" in Microsoft's documentation), with one more code on Unix (UWOP_SET_FPREG_LARGE: src/coreclr/inc/win64unwind.h
 * in dotnet/runtime).
 */
#ifndef SF_FROZEN_CORECLR_UNWIND_INFO_H
#define SF_FROZEN_CORECLR_UNWIND_INFO_H

#include "frozen/coreclr/code.h"
#include "frozen/unwind/walk.h"

/*
 * Moves `regs` from a frame of this body to its caller. `exact`: regs->pc is an instruction that is not yet done, which may be
 * in the prologue or in an epilogue; else it is a return address. *slot_ret: where the return address was. Signal-safe.
 */
bool sf_clr_unwind(const struct sf_reader *memory, const struct sf_clr_body *body, bool exact,
		   struct sf_regs *regs, uint64_t *slot_ret, enum sf_end *why);

#endif
