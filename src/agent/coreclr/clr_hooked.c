/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks' own work: to note the method on the thread's shadow stack. The rules of shadow_writer.h apply. */
#include <stddef.h>

#include "agent/coreclr/clr_hooks.h"
#include "agent/coreclr/shadow_writer.h"
#include "frozen/signal/state.h"

_Atomic uint8_t sf_clr_hooks_on;

static struct sf_shadow_stack *own_stack(uint64_t thread)
{
	struct sf_shadow_table *table = atomic_load_explicit(&sf_shadow_table, memory_order_acquire);

	return table ? sf_shadow_own(table, thread, sf_handler.config.pid) : NULL;
}

/* The method's stack pointer, when the hook has returned. */
static uint64_t frame_at(const uint64_t *return_address)
{
	return (uint64_t)(uintptr_t)(return_address + 1);
}

void sf_clr_hooked_enter(uint64_t function, const uint64_t *return_address, uint64_t thread)
{
	struct sf_shadow_stack *stack = own_stack(thread);

	if (stack)
		sf_shadow_enter(stack, function, *return_address, frame_at(return_address));
}

void sf_clr_hooked_leave(uint64_t function, const uint64_t *return_address, uint64_t thread)
{
	struct sf_shadow_stack *stack = own_stack(thread);

	if (stack)
		sf_shadow_leave(stack, function, frame_at(return_address));
}
