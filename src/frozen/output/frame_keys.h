/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT frame keys: numbers that stand for frames of code that a runtime made. The names of such frames
 * can be read only in the process itself, and only for a while. So a frame leaves the process as a
 * key. At the first frame with a key, the frame is put into a queue, and ordinary code
 * (agent/service/runtime_publisher.c) describes the frame soon.
 *
 * No function waits. If the queue is full, the next frame with the key is queued. If the set
 * of keys is full, the frame is never described; such frames are counted.
 */
#ifndef SF_FROZEN_OUTPUT_FRAME_KEYS_H
#define SF_FROZEN_OUTPUT_FRAME_KEYS_H

#include <stdatomic.h>
#include <stdint.h>

#include "frozen/output/outbox.h"
#include "frozen/trace.h"

struct sf_frame_keys {
	uint64_t seed;                     /* of the keys: those of two profiles differ */
	_Atomic uint64_t *keys;            /* that were put into the queue; 0: free */
	uint32_t n_keys;                   /* a power of two */
	struct sf_outbox_header *queue;    /* of struct sf_frame_key_wanted */
	_Atomic uint64_t n_not_queued;         /* frames that found no room in the set */
};

#define SF_FRAME_KEY_WANTED 1              /* type of the records in the queue */

struct sf_frame_key_wanted {
	struct sf_record_header header;
	uint64_t key;
	struct sf_frame frame;
};

/*
 * The key of a managed frame (sf_kind_is_managed). Equal frames have the same key. Different
 * frames have different keys, except for collisions of a 64-bit hash. Never 0. Signal-safe.
 */
uint64_t sf_frame_key_number(uint64_t seed, const struct sf_frame *frame);

/*
 * The key of a frame, and the queueing of the first frame with a key. These are two steps, so that the
 * processor fetches the scattered entries of all keys of a stack in parallel. Signal-safe, any thread.
 */
uint64_t sf_frame_keys_key(const struct sf_frame_keys *keys, const struct sf_frame *frame);
void sf_frame_keys_queue(struct sf_frame_keys *keys, const struct sf_frame *frame, uint64_t key);

#endif
