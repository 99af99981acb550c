/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's turn at the slots: part of handler.h. Signal-safe; only the sampler calls it. */
#include "frozen/signal/handler.h"

#include "frozen/frozen.h"

_Static_assert(SF_MAX_SLOTS <= 64, "a bit for each");

static bool serve(struct sf_handler *handler, struct sf_workspace *workspace, struct sf_slot *slot)
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
		if (!serve(handler, workspace, &handler->link.slots[i]))
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
