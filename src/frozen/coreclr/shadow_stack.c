/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads shadow stacks. */
#include "frozen/coreclr/shadow_stack.h"

#include <stddef.h>

#include "frozen/frozen.h"

struct sf_shadow_table *_Atomic sf_shadow_table;

const struct sf_shadow_stack *sf_shadow_find(const struct sf_shadow_table *table, int32_t tid)
{
	const uint32_t n = atomic_load_explicit(&table->n_used, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < SF_SHADOW_THREADS; i++) {
		if (atomic_load_explicit(&table->tids[i], memory_order_acquire) == tid)
			return &table->stacks[i];
	}
	return NULL;
}

/* False: the trace is full. */
static bool add_entry(const struct sf_shadow_entry *entry, uint64_t sp, struct sf_trace *trace)
{
	const uint64_t frame = atomic_load_explicit(&entry->frame, memory_order_relaxed);

	if (frame < sp)                 /* left without a hook */
		return true;
	if (trace->n_frames == trace->capacity)
		return false;
	trace->frames[trace->n_frames++] = (struct sf_frame){
		.pc = atomic_load_explicit(&entry->pc, memory_order_relaxed), .sp = frame, .via = SF_VIA_HOOKS, .bci = -1,
	};
	return true;
}

enum sf_shadow_read sf_shadow_read(const struct sf_shadow_stack *stack, uint64_t sp, struct sf_trace *trace)
{
	const uint64_t word = atomic_load_explicit(&stack->word, memory_order_acquire);
	const uint32_t n_before = trace->n_frames;
	bool fits = true;

	for (uint32_t i = 0; fits && i < sf_shadow_n(word) && i <= stack->mask; i++)
		fits = add_entry(sf_shadow_entry(stack, word, i), sp, trace);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&stack->word, memory_order_relaxed) != word) {
		trace->n_frames = n_before;
		return SF_SHADOW_CHANGED;
	}
	trace->end = fits && !sf_shadow_is_cut(word) ? SF_END_ROOT : SF_END_DEPTH;
	return SF_SHADOW_READ;
}
