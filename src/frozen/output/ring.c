/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of records. Signal-safe; one writer and one reader. Only the writer stores `head`, and only
 * the reader stores `tail`. Each store is a release that pairs with the other side's acquire. So the
 * reader sees the bytes of a record before its position. The writer overwrites bytes only after the
 * reader has released them.
 */
#include <string.h>

#include "frozen/output/ring.h"

#include "frozen/frozen.h"

static size_t round_up(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static struct sf_record_header *record_at(const struct sf_ring *ring, uint64_t position)
{
	return (struct sf_record_header *)(ring->bytes + (position & (ring->size - 1)));
}

/* The bytes of the filler that must stand before a record of this size, or 0. */
static size_t filler_size(const struct sf_ring *ring, uint64_t head, size_t size)
{
	const size_t to_end = ring->size - (head & (ring->size - 1));

	return size > to_end ? to_end : 0;
}

void sf_ring_init(struct sf_ring *ring, void *bytes, size_t size)
{
	ring->bytes = bytes;
	ring->size = size;
	ring->reserved = 0;
	atomic_init(&ring->head, 0);
	atomic_init(&ring->tail, 0);
}

void *sf_ring_reserve(struct sf_ring *ring, size_t size)
{
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	/* Pairs with the release in advance_tail: the reader is done with what is overwritten. */
	const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	const size_t available = ring->size - (size_t)(head - tail);
	size_t filler;

	if (size < sizeof(struct sf_record_header) || size > available)
		return NULL;
	size = round_up(size);
	filler = filler_size(ring, head, size);
	if (size + filler > available)
		return NULL;
	ring->reserved = size;
	return record_at(ring, head + filler);
}

static void finish_record(struct sf_record_header *record, size_t size)
{
	const size_t rounded = round_up(size);

	memset((uint8_t *)record + size, 0, rounded - size);
	record->size = (uint32_t)rounded;
}

void sf_ring_commit(struct sf_ring *ring, size_t size)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	const size_t reserved = ring->reserved;
	const size_t filler = filler_size(ring, head, reserved);

	ring->reserved = 0;
	if (size < sizeof(struct sf_record_header) || size > reserved)
		return;
	if (filler)
		*record_at(ring, head) = (struct sf_record_header){ .size = (uint32_t)filler };
	head += filler;
	finish_record(record_at(ring, head), size);
	/* Pairs with the acquire in sf_ring_peek: the record is whole when its position is seen. */
	atomic_store_explicit(&ring->head, head + round_up(size), memory_order_release);
}

static void advance_tail(struct sf_ring *ring, uint64_t tail)
{
	tail += record_at(ring, tail)->size;
	/* Pairs with the acquire in sf_ring_reserve. */
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

const struct sf_record_header *sf_ring_peek(struct sf_ring *ring)
{
	/* Pairs with the release in sf_ring_commit. */
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	/*
	 * A filler is published together with the record behind it, so one step over it is enough.
	 */
	if (tail != head && record_at(ring, tail)->type == 0) {
		advance_tail(ring, tail);
		tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	}
	return tail == head ? NULL : record_at(ring, tail);
}

void sf_ring_release(struct sf_ring *ring)
{
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	if (tail != head)
		advance_tail(ring, tail);
}
