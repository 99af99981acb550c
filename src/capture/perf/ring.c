/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the records in the ring of one CPU. */
#include "capture/perf/ring.h"

#include <stdlib.h>
#include <string.h>

bool sf_perf_ring_init(struct sf_perf_ring *ring, void *mapping, size_t page_size, size_t size)
{
	*ring = (struct sf_perf_ring){
		.page = mapping,
		.data = (const uint8_t *)mapping + page_size,
		.size = size,
		.joined = malloc(SF_PERF_MAX_RECORD),
	};
	return ring->joined;
}

void sf_perf_ring_deinit(struct sf_perf_ring *ring)
{
	free(ring->joined);
	*ring = (struct sf_perf_ring){ 0 };
}

/* The pair of the kernel's barrier before it stores data_head. More than fits is no batch. */
uint64_t sf_perf_ring_begin(struct sf_perf_ring *ring)
{
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	ring->next = ring->page->data_tail;
	if (ring->head - ring->next > ring->size) {
		ring->n_broken++;
		ring->next = ring->head;
	}
	return ring->head - ring->next;
}

bool sf_perf_ring_is_half_full(const struct sf_perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) - ring->page->data_tail >= ring->size / 2;
}

void sf_perf_ring_rewind(struct sf_perf_ring *ring)
{
	ring->next = ring->page->data_tail;
	if (ring->head - ring->next > ring->size)
		ring->next = ring->head;
}

/* Copies bytes of the ring, around its end if need be. */
static void copy_out(const struct sf_perf_ring *ring, uint64_t from, uint8_t *ret, size_t size)
{
	const size_t at = (size_t)(from & (ring->size - 1));
	const size_t straight = ring->size - at < size ? (size_t)(ring->size - at) : size;

	memcpy(ret, ring->data + at, straight);
	memcpy(ret + straight, ring->data, size - straight);
}

static bool is_record(const struct sf_perf_ring *ring, uint64_t size)
{
	return size >= sizeof(struct perf_event_header) && size % 8 == 0 && size <= ring->head - ring->next;
}

/* Records are multiples of 8 bytes, so a header never wraps. */
const struct perf_event_header *sf_perf_ring_peek(struct sf_perf_ring *ring)
{
	const size_t at = (size_t)(ring->next & (ring->size - 1));
	struct perf_event_header header;

	if (ring->head - ring->next < sizeof(header) || at % 8 != 0) {
		ring->next = ring->head;
		return NULL;
	}
	memcpy(&header, ring->data + at, sizeof(header));
	if (!is_record(ring, header.size)) {
		ring->n_broken++;
		ring->next = ring->head;
		return NULL;
	}
	if (at + header.size <= ring->size)
		return (const struct perf_event_header *)(const void *)(ring->data + at);
	copy_out(ring, ring->next, ring->joined, header.size);
	return (const struct perf_event_header *)(void *)ring->joined;
}

const struct perf_event_header *sf_perf_ring_again(struct sf_perf_ring *ring, uint64_t place)
{
	const uint64_t next = ring->next;
	const struct perf_event_header *header;

	ring->next = place;
	header = sf_perf_ring_peek(ring);
	ring->next = next;
	return header;
}

void sf_perf_ring_take(struct sf_perf_ring *ring)
{
	const size_t at = (size_t)(ring->next & (ring->size - 1));
	struct perf_event_header header;

	memcpy(&header, ring->data + at, sizeof(header));
	ring->next = is_record(ring, header.size) ? ring->next + header.size : ring->head;
}

void sf_perf_ring_end(struct sf_perf_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->next, __ATOMIC_RELEASE);
}
