/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those functions of struct sf_arch for x86-64 that read code, and have files of their own. For arch_x86_64.c, which has the
 * others; frozen/arch.h says what they do. All are signal-safe.
 */
#ifndef SF_FROZEN_ARCH_X86_64_H
#define SF_FROZEN_ARCH_X86_64_H

#include "frozen/arch.h"

#define SF_X86_CHUNK 256 /* bytes */

/* As much as can be read of the code at pc, for code ends somewhere. Returns how many bytes. */
size_t sf_x86_read_code(const struct sf_reader *reader, uint64_t pc, uint8_t code[SF_X86_CHUNK]);

/* How a function is left: exit_x86_64.c. */
bool sf_x86_find_exit(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret);

/*
 * Functions that take arguments from the stack of which they do not know the number: held_return_x86_64.c. Whether the code pops
 * the return address to push it again, and whether a register has it meanwhile.
 */
#define SF_X86_GIVES_BACK 32 /* bytes of code that show it */
bool sf_x86_pops_return(const uint8_t *bytes, size_t size);
bool sf_x86_holds_return(const uint8_t *bytes, size_t size, struct sf_exit *ret);

/* Code whose stack is not simply where sp points: moved_sp_x86_64.c. */
bool sf_x86_find_kept_sp(const struct sf_reader *reader, uint64_t pc, unsigned *reg_ret, uint64_t *behind_ret);
bool sf_x86_common_code(const struct sf_reader *reader, const struct sf_regs *regs, uint64_t *pc_ret, int32_t *least_ret);
bool sf_x86_switches_stack(const struct sf_reader *reader, uint64_t pc, bool exact, bool *gives_up_ret);
uint64_t sf_x86_find_call(const struct sf_reader *reader, uint64_t start, uint64_t end, uint64_t target, bool or_jumps);
bool sf_x86_jumps_to(const struct sf_reader *reader, uint64_t start, uint64_t target);

/* Code for which its rules do not hold, or do not say enough: wrong_rules_x86_64.c. */
bool sf_x86_is_in_throw(const struct sf_reader *reader, uint64_t pc, struct sf_throw *ret);
bool sf_x86_is_leaving(const struct sf_reader *reader, uint64_t pc, bool exact);
bool sf_x86_jumps_back(const struct sf_reader *reader, uint64_t pc, bool exact, uint64_t *target_ret);
bool sf_x86_keeps_popped(const struct sf_reader *reader, uint64_t start, uint64_t pc);

/* How functions begin and end: prologue_x86_64.c. */
bool sf_x86_prologue(const struct sf_reader *reader, uint64_t pushed, uint64_t framed, uint64_t pc, struct sf_prologue *ret);

/*
 * For .NET's code: its unwind information describes the prologue only, as Windows x64 has it ("x64 exception handling" in
 * Microsoft's documentation: an epilogue has a fixed form). So the instructions are followed up to the return.
 *
 * Whether regs->pc, where a thread stands, is in an epilogue. Then the registers become what they are when its last
 * instruction is reached: sp points to the return address. A jump from `start` up to `end`, which is the function or
 * the part of it behind its prologue, is no last instruction.
 */
bool sf_x86_follow_epilogue(const struct sf_reader *memory, uint64_t start, uint64_t end, struct sf_regs *regs);

#endif
