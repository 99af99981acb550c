/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of a thread at an event of its own, and the record of it. Signal-safe. */
#include "frozen/signal/event_sample.h"

#include "frozen/raw.h"
#include "frozen/signal/context.h"
#include "frozen/signal/handler.h"

#include "frozen/frozen.h"

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

void sf_event_lose(struct sf_handler_output *output, struct sf_thread_entry *entry, enum sf_loss cause)
{
	const struct sf_stream_event_loss loss = {
		.serial = atomic_load(&entry->serial),
		.cause = cause,
		.amount = atomic_exchange(&entry->event_amount, 0),
	};

	if (loss.amount)
		sf_output_put_record(output, SF_STREAM_EVENT_LOSS, &loss, sizeof(loss), NULL, 0);
}
