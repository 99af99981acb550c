/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's turn: the walks of threads that wait in slots, and those of kept stills (kept_stills.h). Part of handler.h.
 * Signal-safe; only the sampler calls it.
 */
#include "frozen/signal/handler.h"

#include <stddef.h>

#include "frozen/frozen.h"

_Static_assert(SF_MAX_SLOTS <= 64, "a bit for each");

/* --- threads in slots --- */

static bool serve_slot(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_slot *slot)
{
	if (!sf_slot_take(slot))
		return false;
	sf_handler_sample(handler, workspace, slot);
	sf_slot_release(slot);
	return true;
}

/* Serves each slot once. Adds the slots whose threads must be woken to *owed. */
static unsigned pass(struct sf_handler *handler, struct sf_workspace *workspace, uint64_t *owed)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < handler->link.n_slots; i++) {
		if (!serve_slot(handler, workspace, &handler->link.slots[i]))
			continue;
		*owed |= UINT64_C(1) << i;
		n++;
	}
	return n;
}

static void wake(const struct sf_handler_link *link, uint64_t owed)
{
	for (uint32_t i = 0; i < link->n_slots; i++) {
		if (owed >> i & 1)
			sf_slot_wake(&link->slots[i]);
	}
}

/*
 * Threads are woken in a batch. A woken thread may take the sampler's CPU at once; then all held
 * threads wait for a turn of the scheduler. Or it may take the CPU of a thread that is about to enter a
 * slot. On two busy CPUs, one of a hundred holds lasted 4 ms and more when each thread was woken
 * by itself, and 0.1 ms with the batch (docs/benchmarks.md).
 */
unsigned sf_handler_serve(struct sf_handler *handler, struct sf_workspace *workspace)
{
	uint64_t owed = 0;
	unsigned n = 0, last;

	do {
		last = pass(handler, workspace, &owed);
		n += last;
	} while (last && n < SF_SERVED_AT_ONCE);
	wake(&handler->link, owed);
	return n;
}

/* --- kept stills --- */

#define MAX_AGE_NS 100000000u          /* for which a map is waited for ... */
#define UNSEARCHED_NS 500000000u       /* ... or so long, while there was no search since: the service thread may get no CPU */
#define MAX_PAUSE_NS 3200000000u
#define MORE_STACK (UINT64_C(1) << 30) /* beyond the copy, where that is not all of the stack */

/* NULL: the thread has ended, and another one may have its entry. */
static struct sf_thread_entry *entry_of(const struct sf_handler *handler, const struct sf_kept_still *item)
{
	struct sf_thread_entry *entry = &handler->link.entries[item->entry];

	return atomic_load_explicit(&entry->serial, memory_order_relaxed) == item->sample.serial ? entry : NULL;
}

static void walk_again(const struct sf_handler *handler, struct sf_workspace *workspace, const struct sf_kept_still *item)
{
	const uint64_t end = item->stack_start + item->stack_size;
	const struct sf_window stack = {
		.bytes = item->stack, .start = item->stack_start, .size = item->stack_size,
		.stack_end = item->stack_size == SF_KEPT_STACK ? end + MORE_STACK : 0,
	};

	workspace->still = (struct sf_still){
		.arch = handler->config.arch,
		.regs = item->regs,
		.map = atomic_load(&handler->code.map),
		.pid = handler->config.pid,
		.tid = item->tid,
		.flags = SF_STILL_COPY,
		.state = item->sample.state,
		.syscall = SF_SYSCALL_NONE,
		.time_ns = item->sample.time_ns,
	};
	workspace->copy = &stack;
	sf_handler_walk(&handler->code, workspace, &workspace->still, entry_of(handler, item));
	workspace->copy = NULL;
}

/* Code that no search finds is of the program's own making: then stills are kept more and more seldom. */
static void note_end(struct sf_kept_stills *kept, bool helped, uint64_t now_ns)
{
	if (helped) {
		kept->pause_ns = 0;
		return;
	}
	kept->pause_ns = kept->pause_ns < MAX_AGE_NS ? MAX_AGE_NS : 2 * kept->pause_ns;
	if (kept->pause_ns > MAX_PAUSE_NS)
		kept->pause_ns = MAX_PAUSE_NS;
	atomic_store_explicit(&kept->not_before_ns, now_ns + kept->pause_ns, memory_order_relaxed);
}

static void put(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_kept_still *item)
{
	struct sf_kept_stills *kept = handler->link.kept;
	const struct sf_kept_sample *sample = &item->sample;
	struct sf_stream_sample record = {
		.serial = sample->serial, .time_ns = sample->time_ns, .cpu_ns = sample->cpu_ns, .wall_ns = sample->wall_ns,
		.hold_ns = sample->hold_ns, .ticks = sample->ticks, .label = sample->label, .syscall = SF_SYSCALL_NONE,
		.state = sample->state,
	};

	if (!sf_handler_put(handler, workspace, &record))
		sf_handler_lose(&handler->output, entry_of(handler, item), &record, SF_LOSS_RING_FULL);
	atomic_fetch_sub(&kept->n, 1);
	atomic_store_explicit(&item->state, SF_KEPT_FREE, memory_order_release);
}

static uint64_t present_map(const struct sf_handler *handler)
{
	const struct sf_code_map *map = atomic_load(&handler->code.map);

	return map ? map->serial : 0;
}

static bool is_full(const struct sf_kept_still *item)
{
	return atomic_load_explicit(&item->state, memory_order_acquire) == SF_KEPT_FULL;
}

/* Whether a search for its code has begun after the still was taken, and has ended. */
static bool is_searched(const struct sf_handler *handler, const struct sf_kept_still *item)
{
	return atomic_load(&handler->code.n_searches) - item->n_searches >= 2;
}

/* Walks the still if there is another map, or no more time to wait for one. */
static void serve_kept(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_kept_still *item, uint64_t now_ns)
{
	const bool searched = is_searched(handler, item);
	const bool is_last = atomic_load(&handler->link.kept->hurry) ||
			     now_ns > item->sample.time_ns + (searched ? MAX_AGE_NS : UNSEARCHED_NS);
	const uint64_t serial = present_map(handler);
	bool is_stale;

	if (!is_last && serial == item->map_serial)
		return;
	walk_again(handler, workspace, item);
	is_stale = sf_kept_stills_want(&workspace->trace);
	if (is_stale && !is_last) {
		item->map_serial = serial;
		sf_handler_note_stale_map(handler);
		return;
	}
	if (searched || !is_stale)
		note_end(handler->link.kept, !is_stale, now_ns);
	put(handler, workspace, item);
}

void sf_handler_walk_kept(struct sf_handler *handler, struct sf_workspace *workspace, uint64_t now_ns)
{
	struct sf_kept_stills *kept = handler->link.kept;

	if (!sf_kept_stills_any(kept))
		return;
	for (uint32_t i = 0; i < SF_N_KEPT_STILLS; i++) {
		if (is_full(&kept->items[i]))
			serve_kept(handler, workspace, &kept->items[i], now_ns);
	}
}

void sf_handler_settle_kept(struct sf_handler *handler, struct sf_workspace *workspace, uint32_t serial)
{
	struct sf_kept_stills *kept = handler->link.kept;

	if (!sf_kept_stills_any(kept))
		return;
	for (uint32_t i = 0; i < SF_N_KEPT_STILLS; i++) {
		struct sf_kept_still *item = &kept->items[i];

		if (!is_full(item) || (serial && item->sample.serial != serial))
			continue;
		walk_again(handler, workspace, item);
		put(handler, workspace, item);
	}
}
