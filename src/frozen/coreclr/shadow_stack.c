/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads shadow stacks, and walks a held thread by its own: managed frames from there, native ones by our own walk. */
#include "frozen/coreclr/shadow_stack.h"

#include <stddef.h>

#include "frozen/coreclr/coreclr.h"
#include "frozen/signal/handler.h"

#include "frozen/frozen.h"

struct sf_shadow_table *_Atomic sf_shadow_table;

const struct sf_shadow_stack *sf_shadow_find(const struct sf_shadow_table *table, int32_t tid)
{
	const uint32_t n = atomic_load_explicit(&table->n_used, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < SF_SHADOW_THREADS; i++) {
		if (sf_shadow_tid(atomic_load_explicit(&table->owners[i], memory_order_acquire)) == tid)
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

/* --- the walk --- */

static const struct sf_shadow_stack *find_stack(int32_t tid)
{
	const struct sf_shadow_table *table = atomic_load_explicit(&sf_shadow_table, memory_order_acquire);
	const struct sf_shadow_stack *stack = table ? sf_shadow_find(table, tid) : NULL;

	return stack && sf_shadow_n(atomic_load_explicit(&stack->word, memory_order_relaxed)) ? stack : NULL;
}

/* The native frames above the innermost managed one. */
static enum sf_end walk_native(struct sf_workspace *workspace, struct sf_still *still)
{
	enum sf_end end;

	memset(still->handles, 0, sizeof(still->handles));
	still->flags |= SF_STILL_TO_RUNTIME;
	end = sf_workspace_walk(workspace, still);
	still->flags &= ~(uint32_t)SF_STILL_TO_RUNTIME;
	return end;
}

/* Below all frames that the thread has still got. */
static uint64_t stack_pointer(const struct sf_trace *trace, const struct sf_still *still)
{
	return trace->n_frames ? trace->frames[trace->n_frames - 1].sp : still->regs.r[still->arch->sp];
}

/* Their kinds and keys. A frame whose code is not known keeps its address: it is newer than the list of code. */
static void key_frames(const struct sf_coreclr *coreclr, struct sf_workspace *workspace, const struct sf_still *still,
		       uint32_t first)
{
	sf_own_memory_lines_init(&workspace->lines, workspace->access);
	for (uint32_t i = first; i < workspace->trace.n_frames; i++) {
		struct sf_frame *frame = &workspace->trace.frames[i];

		frame->address = frame->pc;
		sf_clr_key_frame(coreclr, &still->memory, frame);
	}
}

bool sf_shadow_walk(const struct sf_handler_code *code, struct sf_workspace *workspace, struct sf_still *still,
		    const struct sf_thread_entry *entry, enum sf_loss *cause_ret)
{
	struct sf_trace *trace = &workspace->trace;
	const struct sf_coreclr *coreclr = sf_coreclr_of(still->map);
	const struct sf_shadow_stack *stack = coreclr ? find_stack(still->tid) : NULL;
	uint32_t n_native;

	if (!stack) {
		sf_handler_walk(code, workspace, still, entry);
		return true;
	}
	trace->end = walk_native(workspace, still);
	if (trace->end == SF_END_ROOT || trace->end == SF_END_DEPTH)
		return true;
	n_native = trace->n_frames;
	if (sf_shadow_read(stack, stack_pointer(trace, still), trace) == SF_SHADOW_CHANGED) {
		*cause_ret = SF_LOSS_CLR_SHADOW_CHANGED;
		return false;
	}
	if (trace->n_frames == n_native)
		sf_handler_walk(code, workspace, still, entry);
	else
		key_frames(coreclr, workspace, still, n_native);
	return true;
}
