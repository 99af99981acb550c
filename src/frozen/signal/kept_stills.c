/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what a still needs to be walked again. Signal-safe, any thread. */
#include "frozen/signal/kept_stills.h"

#include <stddef.h>

#include "frozen/raw.h"
#include "frozen/signal/workspace.h"

#include "frozen/frozen.h"

static struct sf_kept_still *claim(struct sf_kept_stills *kept)
{
	for (uint32_t i = 0; i < SF_N_KEPT_STILLS; i++) {
		uint32_t word = SF_KEPT_FREE;

		if (atomic_compare_exchange_strong(&kept->items[i].state, &word, SF_KEPT_FILLING))
			return &kept->items[i];
	}
	return NULL;
}

bool sf_kept_stills_want(const struct sf_trace *trace)
{
	return sf_trace_may_be_stale(trace) && trace->end != SF_END_ROOT && trace->end != SF_END_DEPTH;
}

bool sf_kept_stills_keep(struct sf_kept_stills *kept, const struct sf_own_memory *memory, const struct sf_still *still,
			 uint32_t entry, const struct sf_stream_sample *sample)
{
	struct sf_kept_still *item;

	if (!kept || !still->map || atomic_load_explicit(&kept->hurry, memory_order_relaxed) ||
	    sample->time_ns < atomic_load_explicit(&kept->not_before_ns, memory_order_relaxed))
		return false;
	item = claim(kept);
	if (!item)
		return false;
	item->entry = entry;
	item->tid = still->tid;
	item->regs = still->regs;
	item->sample = (struct sf_kept_sample){
		.time_ns = sample->time_ns, .cpu_ns = sample->cpu_ns, .wall_ns = sample->wall_ns,
		.serial = sample->serial, .ticks = sample->ticks, .label = sample->label, .state = sample->state,
	};
	item->map_serial = still->map->serial;
	item->stack_start = sf_workspace_piece_start(still->regs.r[still->arch->sp]);
	item->stack_size = sf_own_memory_read(memory, item->stack, item->stack_start, SF_KEPT_STACK);
	item->sample.hold_ns = sf_raw_now_ns() - sample->time_ns; /* the copy is a part of it */
	atomic_fetch_add(&kept->n, 1);
	atomic_store_explicit(&item->state, SF_KEPT_FULL, memory_order_release);
	return true;
}
