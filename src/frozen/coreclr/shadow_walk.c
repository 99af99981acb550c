/* SPDX-License-Identifier: Apache-2.0 */
/* Joins native frames of our own walk and managed frames of a shadow stack. */
#include "frozen/coreclr/shadow_walk.h"

#include "frozen/coreclr/coreclr.h"
#include "frozen/coreclr/shadow_stack.h"

#include "frozen/frozen.h"

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
