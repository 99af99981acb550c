/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks that managed code calls where a method is entered, left, or left by a tail call (FunctionEnter3, FunctionLeave3,
 * FunctionTailcall3). They are written in assembly (clr_hooks_x86_64.S), and keep all registers.
 */
#ifndef SF_AGENT_CORECLR_CLR_HOOKS_H
#define SF_AGENT_CORECLR_CLR_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether hooks do anything. While it is 0 a hook tests it and returns. */
extern _Atomic uint8_t sf_clr_hooks_on;

/* The hooks as the runtime takes them. False: they are not written for this architecture. */
bool sf_clr_hooks(void **enter_ret, void **leave_ret);

/*
 * The hooks call these, with all general registers saved. `return_address`: where the hook's own return address lies, at
 * the foot of the method's frame. `thread`: the thread pointer.
 */
void sf_clr_hooked_enter(uint64_t function, const uint64_t *return_address, uint64_t thread);
void sf_clr_hooked_leave(uint64_t function, const uint64_t *return_address, uint64_t thread);

#endif
