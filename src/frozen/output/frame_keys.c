/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of managed frames, and the queue of frames that ordinary code describes later. Signal-safe;
 * a full queue or a full set drops the request, and nothing waits.
 */
#include "frozen/output/frame_keys.h"

#include "frozen/frozen.h"

#define MAX_PROBES 32

/* The finalizer of MurmurHash3, which is in the public domain: every bit changes every other. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/*
 * The part of a key that differs between addresses in the same code: the bytecode in interpreted code,
 * the address in compiled code. A stub with a token has one key.
 */
static uint64_t where(const struct sf_frame *frame)
{
	if (sf_kind_is_by_method(frame->kind))
		return (uint32_t)frame->bci;
	if (frame->kind == SF_KIND_STUB && frame->token)
		return 0;
	return frame->pc << 1 | (frame->flags & SF_FRAME_EXACT ? 1 : 0);
}

uint64_t sf_frame_key_number(uint64_t seed, const struct sf_frame *frame)
{
	uint64_t key = mix(seed ^ frame->token);

	key = mix(key + ((uint64_t)frame->kind << 32 | frame->id));
	key = mix(key + where(frame));
	return key ? key : 1;
}

static bool queue(struct sf_frame_keys *keys, const struct sf_frame *frame, uint64_t key)
{
	const struct sf_outbox_piece pieces[] = {
		{ &key, sizeof(key) },
		{ frame, sizeof(*frame) },
	};

	return sf_outbox_put(keys->queue, SF_FRAME_KEY_WANTED, pieces, 2);
}

static _Atomic uint64_t *entry_of(const struct sf_frame_keys *keys, uint64_t key, uint32_t probe)
{
	return &keys->keys[(uint32_t)(key + probe) & (keys->n_keys - 1)];
}

uint64_t sf_frame_keys_key(const struct sf_frame_keys *keys, const struct sf_frame *frame)
{
	const uint64_t key = sf_frame_key_number(keys->seed, frame);

	__builtin_prefetch(entry_of(keys, key, 0));
	return key;
}

/* Two threads may queue the same key at once: it is described twice, which does no harm. */
void sf_frame_keys_queue(struct sf_frame_keys *keys, const struct sf_frame *frame, uint64_t key)
{
	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		_Atomic uint64_t *at = entry_of(keys, key, i);
		uint64_t found = atomic_load_explicit(at, memory_order_relaxed);

		if (found == key)
			return;
		if (found)
			continue;
		if (!queue(keys, frame, key) || atomic_compare_exchange_strong(at, &found, key) ||
		    found == key)
			return;
	}
	atomic_fetch_add_explicit(&keys->n_not_queued, 1, memory_order_relaxed);
}
