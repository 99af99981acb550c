/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts an event without a lock, draws the occurrences that are sampled, and samples the thread on which one has happened.
 * Signal-safe.
 */
#include "frozen/signal/event.h"

#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/context.h"
#include "frozen/signal/handler.h"

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

/* --- a sample --- */

static struct sf_slot *claim_slot(const struct sf_handler_link *link)
{
	uint32_t cpu = 0;

	sf_raw_cpu(&cpu);
	return sf_slot_claim(link->slots, link->n_slots, cpu);
}

/* A runtime's stub is called by a managed function, and is no place of the program. */
static bool is_of_program(const struct sf_frame *frame)
{
	return sf_kind_is_managed(frame->kind) && frame->kind != SF_KIND_STUB;
}

/*
 * The number of frames that the sample leaves out: the innermost one is stillframe's own, and so are those of the same
 * image.
 */
static uint32_t count_left_out(const struct sf_trace *trace)
{
	uint32_t n_own = 1;

	for (uint32_t i = 0; i < trace->n_frames; i++) {
		if (is_of_program(&trace->frames[i]))
			return i;
	}
	while (n_own < trace->n_frames && trace->frames[0].image && trace->frames[n_own].image == trace->frames[0].image)
		n_own++;
	return n_own < trace->n_frames ? n_own : trace->n_frames;
}

static bool put(struct sf_handler *handler, const struct sf_slot *slot, const struct sf_event *event, uint64_t amount)
{
	struct sf_workspace *workspace = slot->workspace;
	const struct sf_trace *trace = &workspace->trace;
	const uint32_t skip = count_left_out(trace), n = trace->n_frames - skip;
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_stream_event record = {
		.serial = atomic_load_explicit(&event->entry->serial, memory_order_relaxed),
		.n_frames = n,
		.time_ns = slot->tick_ns,
		.hold_ns = sf_raw_now_ns() - slot->entered_ns,
		.amount = amount,
		.end = (uint8_t)trace->end,
		.key_size = event->key_size,
		.value_size = event->value_size,
		.second_key_size = event->second_key_size,
		.second_value_size = event->second_value_size,
	};
	const struct sf_outbox_piece pieces[] = {
		{ (const uint8_t *)&record + header, sizeof(record) - header },
		{ workspace->packed + skip, n * sizeof(*workspace->packed) },
		{ event->key, event->key_size },
		{ event->value, event->value_size },
		{ event->second_key, event->second_key_size },
		{ event->second_value, event->second_value_size },
	};

	sf_handler_pack(handler, workspace, skip);
	return sf_output_put(&handler->output, SF_STREAM_EVENT, pieces, sizeof(pieces) / sizeof(pieces[0]));
}

static void sample_in(struct sf_handler *handler, struct sf_slot *slot, const struct sf_event *event)
{
	struct sf_thread_entry *entry = event->entry;
	const uint64_t amount = atomic_exchange(&entry->event_amount, 0);
	struct sf_still *still = &slot->workspace->still;

	slot->tid = atomic_load_explicit(&entry->tid, memory_order_relaxed);
	slot->entry = (uint32_t)(entry - handler->link.entries);
	slot->entered_ns = slot->tick_ns = sf_raw_now_ns();
	sf_context_registers(event->ucontext, &slot->regs);
	sf_handler_fill_still(handler, slot, still);
	sf_handler_walk(&handler->code, slot->workspace, still, entry);
	if (put(handler, slot, event, amount))
		atomic_fetch_add_explicit(&entry->n_samples, 1, memory_order_relaxed);
	else
		atomic_fetch_add(&entry->event_amount, amount);
	atomic_store_explicit(&slot->map, NULL, memory_order_release);
	sf_event_pace(&handler->event, amount, slot->tick_ns);
}

void sf_event_sample(struct sf_handler *handler, const struct sf_event *event)
{
	struct sf_slot *slot = claim_slot(&handler->link);

	if (!slot)
		return;
	if (slot->workspace)
		sample_in(handler, slot, event);
	sf_slot_leave(slot);
}

void sf_event_lose(struct sf_handler_output *output, struct sf_thread_entry *entry)
{
	const struct sf_stream_event_loss loss = {
		.serial = atomic_load(&entry->serial),
		.cause = SF_LOSS_REST,
		.amount = atomic_exchange(&entry->event_amount, 0),
	};

	if (loss.amount)
		sf_output_put_record(output, SF_STREAM_EVENT_LOSS, &loss, sizeof(loss), NULL, 0);
}
