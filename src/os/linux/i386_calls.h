/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls of i386 that 64-bit code makes by `int $0x80`, on x86-64: their numbers and the registers of their arguments are
 * others, and the kernel shows the numbers as they are. For src/os/linux only.
 */
#ifndef SF_OS_LINUX_I386_CALLS_H
#define SF_OS_LINUX_I386_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/arch.h"

/*
 * Whether a sleeping thread's call of this number may be one of i386. Not if it is one in which threads usually sleep: so few
 * looks read the code. Of i386's calls with such numbers three sleep, and their arguments are no others' arguments.
 */
bool sf_i386_may_be(int32_t number, const uint64_t args[6]);

/* Whether a thread in a system call, with all registers, is certainly in none of i386. */
bool sf_i386_is_other(const struct sf_regs *regs);

/* Whether the code before the pc of a thread in a system call is `int $0x80`. */
bool sf_i386_is_behind(int32_t pid, uint64_t pc);

/* The number of this architecture for the call that has this one on i386; SF_SYSCALL_UNTOLD: it has none. */
int32_t sf_i386_call(int32_t number);

/* The registers of its arguments. */
extern const uint8_t sf_i386_args[6];

#endif
