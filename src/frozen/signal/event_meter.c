/* SPDX-License-Identifier: Apache-2.0 */
/* Counts an event without a lock, and draws the occurrences that are sampled. Signal-safe, any thread. */
#include "frozen/signal/event_meter.h"

#include "frozen/random.h"

#include "frozen/frozen.h"

#define WINDOWS_PER_SECOND 10
#define FEW 4                    /* this part of the budget is few samples */
#define MAX_EACH (UINT64_C(1) << 50)
#define MAX_TRIES 8              /* against other threads that count at once */

void sf_event_meter_init(struct sf_event_meter *meter, uint64_t each, uint64_t per_second, uint64_t now_ns)
{
	atomic_store(&meter->on, false);
	atomic_store(&meter->counted, 0);
	atomic_store(&meter->homeless, 0);
	atomic_store(&meter->each, each ? each : 1);
	atomic_store(&meter->due, atomic_load(&meter->each));
	meter->fixed = each != 0;
	meter->budget = (uint32_t)(per_second / WINDOWS_PER_SECOND);
	if (!meter->budget)
		meter->budget = 1;
	atomic_store(&meter->window_ns, now_ns);
	atomic_store(&meter->n_in_window, 0);
	atomic_store(&meter->random, now_ns | 1);
}

/* The mark comes first, then the look at the switch: see sf_event_begin. */
bool sf_event_begin(struct sf_event_meter *meter)
{
	if (!atomic_load_explicit(&meter->on, memory_order_relaxed))
		return false;
	atomic_fetch_add(&meter->n_inside, 1);
	if (atomic_load(&meter->on))
		return true;
	sf_event_end(meter);
	return false;
}

void sf_event_end(struct sf_event_meter *meter)
{
	atomic_fetch_sub(&meter->n_inside, 1);
}

/* Two threads that draw at once may get the same number, which is random all the same. */
static uint64_t draw(struct sf_event_meter *meter)
{
	uint64_t state = atomic_load_explicit(&meter->random, memory_order_relaxed);
	const uint64_t drawn = sf_random(&state);

	atomic_store_explicit(&meter->random, state, memory_order_relaxed);
	return drawn;
}

/* Fixed: the multiples of `each`. Else 1 to 2 x each - 1 further on. */
static uint64_t next_due(struct sf_event_meter *meter, uint64_t counted)
{
	const uint64_t each = atomic_load_explicit(&meter->each, memory_order_relaxed);

	if (meter->fixed)
		return (counted / each + 1) * each;
	return counted + 1 + (each > 1 ? draw(meter) % (2 * each - 1) : 0);
}

/*
 * Two that count at once take two due amounts, unless one of them has passed both. Where each is sampled, none is left
 * to chance.
 */
bool sf_event_count(struct sf_event_meter *meter, uint64_t amount)
{
	const uint64_t counted = atomic_fetch_add(&meter->counted, amount) + amount;
	uint64_t due = atomic_load(&meter->due);

	if (atomic_load_explicit(&meter->each, memory_order_relaxed) <= 1)
		return true;
	for (unsigned i = 0; i < MAX_TRIES && counted >= due; i++) {
		if (atomic_compare_exchange_strong(&meter->due, &due, next_due(meter, counted)))
			return true;
	}
	return false;
}

static void set_each(struct sf_event_meter *meter, uint64_t each)
{
	atomic_store_explicit(&meter->each, each < 1 ? 1 : each > MAX_EACH ? MAX_EACH : each, memory_order_relaxed);
}

void sf_event_pace(struct sf_event_meter *meter, uint64_t amount, uint64_t now_ns)
{
	const uint32_t n = atomic_fetch_add(&meter->n_in_window, 1) + 1;
	const uint64_t each = atomic_load_explicit(&meter->each, memory_order_relaxed);
	uint64_t began_ns = atomic_load(&meter->window_ns);
	const bool over = now_ns > began_ns && now_ns - began_ns >= SF_EVENT_WINDOW_NS;

	if (meter->fixed || (!over && n < meter->budget) || !atomic_compare_exchange_strong(&meter->window_ns, &began_ns, now_ns))
		return;
	atomic_store(&meter->n_in_window, 0);
	if (!over)
		set_each(meter, 2 * (amount > each ? amount : each));
	else if (n < meter->budget / FEW)
		set_each(meter, each / 2);
}
