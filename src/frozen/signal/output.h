/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the agent: the outbox, and the wake-up of the thread that empties it. All functions
 * are signal-safe.
 */
#ifndef SF_FROZEN_SIGNAL_OUTPUT_H
#define SF_FROZEN_SIGNAL_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/ends.h"
#include "frozen/output/outbox.h"
#include "frozen/signal/wake_up.h"

struct sf_handler_output {
	struct sf_outbox_header *_Atomic outbox; /* NULL: no reader; its memory stays mapped */
	_Atomic uint64_t full_bytes;       /* in the outbox, at which the service thread is woken; 0:
					    * another process empties the outbox */
	struct sf_wake_up wake_up;         /* the service thread sleeps on it */
};

/*
 * Appends a record. The outbox pointer is read once, because a stop may clear it meanwhile. True also
 * when there is no outbox; false: no room.
 */
bool sf_output_put(struct sf_handler_output *output, uint16_t type,
		   const struct sf_outbox_piece *pieces, unsigned n);

/*
 * Appends a record of this size that begins with its header, and then `text_size` bytes of text. The
 * type and the size in the header need not be set.
 */
bool sf_output_put_record(struct sf_handler_output *output, uint16_t type, const void *record,
			  size_t size, const void *text, size_t text_size);

/* Appends a loss; false: no room. */
bool sf_output_lose(struct sf_handler_output *output, uint32_t serial, enum sf_loss cause,
		    uint64_t cpu_ns, uint64_t wall_ns, uint32_t ticks);

#endif
