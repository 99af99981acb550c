/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers in a signal handler's third argument, and mending a system call that the signal
 * broke.
 */
#ifndef SF_FROZEN_SIGNAL_CONTEXT_H
#define SF_FROZEN_SIGNAL_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/signal/state.h"

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
 * the EINTR. True: the context was changed. The kernel does not keep the number of the call, so it is
 * read from the instruction that loads it (`mov $n, %eax; syscall`, as in libc's wrappers). `code`
 * holds the n_code bytes before pc (SF_CONTEXT_CODE are enough). The context is not changed if the
 * program's own handler is about to interrupt the call, too. aarch64: never (x0 is overwritten, so the
 * call cannot be made again). Signal-safe.
 */
#define SF_CONTEXT_CODE 24
#define SF_CONTEXT_LEAST_CODE 4 /* xor %eax, %eax; syscall */
bool sf_context_mend(const struct sf_handler_config *config, void *ucontext, const uint8_t *code, size_t n_code);

/*
 * Makes a call fail with EINTR, as it would without us. This is needed when the kernel is about to
 * restart the call because our action has SA_RESTART, and a signal of the program whose action has no
 * SA_RESTART is pending, too. Signal-safe.
 */
void sf_context_give_way(const struct sf_handler_config *config, void *ucontext);

/*
 * Called when a handler of the program's has returned to ours. Where it interrupted a call, the context is marked:
 * sf_context_mend leaves the call's EINTR to the program if a signal of ours comes before the program's next
 * instruction. Signal-safe.
 */
void sf_context_leave_interrupted(void *ucontext);

#endif
