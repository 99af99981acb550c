/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the agent: records into the outbox. Signal-safe, any thread. */
#include "frozen/signal/output.h"

#include "frozen/output/record.h"

#include "frozen/frozen.h"

bool sf_output_put(struct sf_handler_output *output, uint16_t type,
		   const struct sf_outbox_piece *pieces, unsigned n)
{
	struct sf_outbox_header *outbox =
		atomic_load_explicit(&output->outbox, memory_order_acquire);
	const uint64_t full = atomic_load_explicit(&output->full_bytes, memory_order_relaxed);
	bool put;

	if (!outbox)
		return true;
	put = sf_outbox_put(outbox, type, pieces, n);
	if (full && sf_outbox_used(outbox) >= full)
		sf_wake_up_post(&output->wake_up);
	return put;
}

bool sf_output_put_record(struct sf_handler_output *output, uint16_t type, const void *record,
			  size_t size, const void *text, size_t text_size)
{
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_outbox_piece pieces[] = {
		{ (const uint8_t *)record + header, size - header }, { text, text_size },
	};

	return sf_output_put(output, type, pieces, text_size ? 2 : 1);
}

bool sf_output_lose(struct sf_handler_output *output, uint32_t serial, enum sf_loss cause,
		    uint64_t cpu_ns, uint64_t wall_ns, uint32_t ticks)
{
	const struct sf_stream_loss loss = {
		.serial = serial,
		.cause = cause,
		.cpu_ns = cpu_ns,
		.wall_ns = wall_ns,
		.ticks = ticks,
	};

	return sf_output_put_record(output, SF_STREAM_LOSS, &loss, sizeof(loss), NULL, 0);
}
