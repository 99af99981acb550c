/* SPDX-License-Identifier: Apache-2.0 */
/* How functions begin and end on x86-64, by their code. */
#ifndef SF_FROZEN_EDGES_X86_64_H
#define SF_FROZEN_EDGES_X86_64_H

#include "frozen/arch.h"

/* `prologue` of struct sf_arch: of functions that keep a frame pointer. Signal-safe. */
bool sf_x86_prologue(const struct sf_reader *reader, uint64_t pushed, uint64_t framed, uint64_t pc, struct sf_prologue *ret);

/*
 * For .NET's code: its unwind information describes the prologue only, as Windows x64 has it ("x64 exception handling" in
 * Microsoft's documentation: an epilogue has a fixed form). So the instructions are followed up to the return.
 *
 * Whether regs->pc, where a thread stands, is in an epilogue. Then the registers become what they are when its last
 * instruction is reached: sp points to the return address. A jump from `start` up to `end`, which is the function or
 * the part of it behind its prologue, is no last instruction. Signal-safe.
 */
bool sf_x86_follow_epilogue(const struct sf_reader *memory, uint64_t start, uint64_t end, struct sf_regs *regs);

#endif
