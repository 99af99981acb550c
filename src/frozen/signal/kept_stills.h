/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stills whose walks met code that the map does not have yet: their registers and a copy of their stacks. The thread runs
 * on. When the service thread has published another map, the sampler walks them again (sampler_turn.c). While a program
 * starts, its loader and its runtimes map code all the time: up to a quarter of the samples would be cut.
 *
 * An item is one word: FREE -> FILLING by a thread in its handler, or by the sampler; FILLING -> FULL by the same; FULL ->
 * FREE by the sampler. Without a free item a sample stays as its first walk left it.
 */
#ifndef SF_FROZEN_SIGNAL_KEPT_STILLS_H
#define SF_FROZEN_SIGNAL_KEPT_STILLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/arch.h"
#include "frozen/output/record.h"
#include "frozen/unwind/walk.h"

#define SF_N_KEPT_STILLS 8
#define SF_KEPT_STACK (64u << 10) /* bytes; the outer part of a larger stack is cut */

enum { SF_KEPT_FREE, SF_KEPT_FILLING, SF_KEPT_FULL };

/* The parts of a sample beside its frames (struct sf_stream_sample). */
struct sf_kept_sample {
	uint64_t time_ns, cpu_ns, wall_ns, hold_ns;
	uint32_t serial, ticks, label;
	uint8_t  state;
};

struct sf_kept_still {
	_Atomic uint32_t state;     /* SF_KEPT_FREE, ... */
	uint32_t entry;             /* of the thread, number (thread_table.h) */
	int32_t  tid;
	struct sf_regs regs;
	struct sf_kept_sample sample;
	uint64_t map_serial;        /* of the map by which it was walked; the sampler's once it is FULL */
	uint64_t n_searches;        /* that had ended when it was kept: with two more, one has begun and ended since */
	uint64_t stack_start, stack_size;
	uint8_t  stack[SF_KEPT_STACK];
};

/* Zeroed to begin with: pages that no still needs are not touched. */
struct sf_kept_stills {
	_Atomic uint32_t n;             /* FULL, or about to be */
	_Atomic uint32_t hurry;         /* all are wanted now */
	_Atomic uint64_t not_before_ns; /* the program has code that no map gets: none is kept until then */
	uint64_t pause_ns;              /* ... for so long, each time longer; the sampler's */
	struct sf_kept_still items[SF_N_KEPT_STILLS];
};

/* Whether a walk that ended so may go on by another map. Signal-safe. */
static inline bool sf_kept_stills_want(const struct sf_trace *trace)
{
	return sf_trace_may_be_stale(trace) && trace->end != SF_END_ROOT && trace->end != SF_END_DEPTH;
}

/* Whether there are any. Signal-safe. */
static inline bool sf_kept_stills_any(const struct sf_kept_stills *kept)
{
	return kept && atomic_load_explicit(&kept->n, memory_order_relaxed);
}

#endif
