/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the words of copied stacks that point to stacks that were not copied. */
#include "capture/ptrace/stack_leads.h"

#include <string.h>

#include "frozen/still.h"

#define MAX_FRAME 4096u                  /* from a frame's lowest address to what a walk reads of it first */
#define MAX_SEARCHED ((uint64_t)1 << 20) /* bytes of a window */

struct sf_copy_plan sf_stack_leads_plan(struct sf_stack_leads *leads, uint32_t size)
{
	struct sf_copy_plan plan = { .size = size };

	for (unsigned i = 0; i < SF_MAX_OTHER_STACKS; i++) {
		const uint64_t at = atomic_load_explicit(&leads->at[i], memory_order_relaxed);

		if (at)
			plan.leads[plan.n_leads++] = at;
	}
	return plan;
}

/*
 * The best word so far: of the pointer to exactly there, or of the lowest one, the highest word. The code that left a stack
 * has stored the end of it at the top of the new one.
 */
struct best {
	uint64_t at, pointer;
};

static bool is_better(uint64_t pointer, const struct best *best, uint64_t unread)
{
	return !best->at || pointer == unread || (best->pointer != unread && pointer <= best->pointer);
}

static bool is_near(uint64_t pointer, uint64_t unread)
{
	return pointer <= unread && unread - pointer < MAX_FRAME;
}

static void search(const uint8_t *bytes, uint64_t start, uint64_t size, uint64_t unread, struct best *best)
{
	uint64_t pointer;

	if (size > MAX_SEARCHED)
		size = MAX_SEARCHED;
	for (uint64_t i = (0 - start) % 8; i + 8 <= size; i += 8) {
		memcpy(&pointer, bytes + i, sizeof(pointer));
		if (is_near(pointer, unread) && is_better(pointer, best, unread))
			*best = (struct best){ start + i, pointer };
	}
}

static bool is_known(struct sf_stack_leads *leads, uint64_t at)
{
	for (unsigned i = 0; i < SF_MAX_OTHER_STACKS; i++) {
		if (atomic_load_explicit(&leads->at[i], memory_order_relaxed) == at)
			return true;
	}
	return false;
}

bool sf_stack_leads_find(struct sf_stack_leads *leads, const struct sf_still *still, uint64_t unread)
{
	const struct sf_reader *windows = &still->memory;
	const unsigned fp = sf_arch_host()->fp;
	struct best best = { 0 };

	search(windows->window, windows->window_start, windows->window_size, unread, &best);
	for (uint32_t i = 0; i < windows->n_others; i++)
		search(windows->others[i].bytes, windows->others[i].start, windows->others[i].size, unread, &best);
	if (!best.at && sf_reg_known(&still->regs, fp) && is_near(still->regs.r[fp], unread))
		best.at = SF_LEAD_FP;
	if (!best.at || is_known(leads, best.at))
		return false;
	atomic_store_explicit(&leads->at[leads->n_found++ % SF_MAX_OTHER_STACKS], best.at, memory_order_relaxed);
	return true;
}
