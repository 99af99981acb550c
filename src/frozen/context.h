/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers in a signal handler's third argument, and mending a system call that the signal
 * broke.
 */
#ifndef SF_FROZEN_CONTEXT_H
#define SF_FROZEN_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/arch.h"

/* ucontext: a ucontext_t of the host. All registers become known. Signal-safe. */
void sf_context_registers(const void *ucontext, struct sf_regs *ret);

/*
 * Whether the context may stand behind a call that failed with EINTR: worth a look at the code
 * before pc. Signal-safe.
 */
bool sf_context_interrupted(const void *ucontext, uint64_t *pc_ret);

/*
 * A signal that comes while a system call is about to sleep makes it return EINTR, whatever
 * SA_RESTART says (signal(7)). Where the context stands behind such a call, and the call had no
 * effect yet and can be made again, the context is changed so that it is: the program never sees
 * the EINTR. True when it was. The number is read from the instruction that loads it (`mov $n,
 * %eax; syscall`, as libc's wrappers have it), as the kernel does not keep it; `code` holds the
 * bytes before pc, n_code of them (SF_CONTEXT_CODE are enough). Not where the program's own handler
 * is about to interrupt it, too. aarch64: never (x0 is overwritten, so the call cannot be made
 * again). Signal-safe.
 */
#define SF_CONTEXT_CODE 24
#define SF_CONTEXT_LEAST_CODE 4 /* xor %eax, %eax; syscall */
bool sf_context_mend(void *ucontext, const uint8_t *code, size_t n_code);

/*
 * Where the kernel is about to restart a call because our signal has SA_RESTART, and a signal of
 * the program's that has not is pending, too: the call fails with EINTR, as it would without us.
 * Signal-safe.
 */
void sf_context_give_way(void *ucontext);

#endif
