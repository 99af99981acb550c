/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of outbox.h. A position is an ever growing count of bytes; what it names in the ring is
 * its low bits. The bytes between tail and head that nobody has written yet are zero, so a size
 * that is not zero says that its record is whole.
 */
#include <string.h>

#include "frozen/output/outbox.h"

#include "frozen/frozen.h"

#define HEADER sizeof(struct sf_record_header)

static uint64_t round_up(uint64_t size)
{
	return (size + 7) & ~UINT64_C(7);
}

static uint8_t *at(struct sf_outbox_header *box, uint64_t ring_size, uint64_t position)
{
	return box->bytes + (position & (ring_size - 1));
}

/* The size of the record here: what publishes it. */
static _Atomic uint32_t *size_at(struct sf_outbox_header *box, uint64_t ring_size,
				 uint64_t position)
{
	return (_Atomic uint32_t *)(void *)at(box, ring_size, position);
}

struct sf_outbox_header *sf_outbox_init(void *memory, uint64_t ring_size, uint32_t version)
{
	struct sf_outbox_header *box = memory;

	box->magic = SF_OUTBOX_MAGIC;
	box->version = version;
	box->size = ring_size;
	atomic_init(&box->head, 0);
	atomic_init(&box->tail, 0);
	atomic_init(&box->lost, 0);
	return box;
}

/* --- the writers' side --- */

/* The filler that must stand before a record of this size, so that it does not wrap around. */
static uint64_t filler_size(uint64_t ring_size, uint64_t head, uint64_t size)
{
	const uint64_t to_end = ring_size - (head & (ring_size - 1));

	return size > to_end ? to_end : 0;
}

/*
 * How many bytes of the ring are in use. After a writer has loaded the head, other writers may write, and the reader may
 * read beyond that head. The tail is ahead of it then, and the head is loaded again. A result that is larger than the ring
 * comes of a tail that cannot be: the reader's process can write anything there.
 */
static uint64_t find_used(const struct sf_outbox_header *box, uint64_t *head_io)
{
	uint64_t head = *head_io, used;

	do {
		*head_io = head;
		/* Pairs with the release in give_back: what is overwritten was zeroed before. */
		used = head - atomic_load_explicit(&box->tail, memory_order_acquire);
		if (used > box->size)
			head = atomic_load_explicit(&box->head, memory_order_relaxed);
	} while (head != *head_io);
	return used;
}

/* Moves head over room for a filler and a record. False: there is none. */
static bool reserve(struct sf_outbox_header *box, uint64_t size, uint64_t *start_ret,
		    uint64_t *filler_ret)
{
	uint64_t head = atomic_load_explicit(&box->head, memory_order_relaxed);
	uint64_t filler, used;

	do {
		used = find_used(box, &head);
		filler = filler_size(box->size, head, size);
		if (used > box->size || size + filler > box->size - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&box->head, &head, head + filler + size,
							memory_order_relaxed,
							memory_order_relaxed));
	*start_ret = head;
	*filler_ret = filler;
	return true;
}

/* Pairs with the acquire in look: the bytes of the record are seen before its size. */
static void publish(struct sf_outbox_header *box, uint64_t position, uint64_t size)
{
	atomic_store_explicit(size_at(box, box->size, position), (uint32_t)size,
			      memory_order_release);
}

/* The fields of a record behind its size, which publish() stores. */
static void set_type(struct sf_outbox_header *box, uint64_t position, uint16_t type)
{
	const struct sf_record_header header = { .type = type };

	memcpy(at(box, box->size, position) + sizeof(header.size), &header.type,
	       sizeof(header) - sizeof(header.size));
}

void *sf_outbox_reserve(struct sf_outbox_header *box, uint64_t size)
{
	uint64_t start, filler;

	if (size > UINT32_MAX - HEADER - 7 || !reserve(box, round_up(HEADER + size), &start, &filler))
		return NULL;
	if (filler)
		publish(box, start, filler); /* its type is 0, as the room was zeroed */
	return at(box, box->size, start + filler) + HEADER;
}

void sf_outbox_commit(struct sf_outbox_header *box, void *bytes, uint64_t reserved, uint16_t type,
		      uint64_t size)
{
	const uint64_t position = (uint64_t)((uint8_t *)bytes - box->bytes) - HEADER;
	const uint64_t room = round_up(HEADER + reserved);
	const uint64_t used = type ? round_up(HEADER + size) : room;

	if (used < room) {
		set_type(box, position + used, SF_OUTBOX_FILLER);
		publish(box, position + used, room - used);
	}
	if (type)
		memset((uint8_t *)bytes + size, 0, used - HEADER - size);
	set_type(box, position, type);
	publish(box, position, used);
}

bool sf_outbox_put(struct sf_outbox_header *box, uint16_t type,
		   const struct sf_outbox_piece *pieces, unsigned n)
{
	uint8_t *bytes, *to;
	uint64_t size = 0;

	for (unsigned i = 0; i < n; i++)
		size += pieces[i].size;
	bytes = to = sf_outbox_reserve(box, size);
	if (!bytes) {
		atomic_fetch_add_explicit(&box->lost, 1, memory_order_relaxed);
		return false;
	}
	for (unsigned i = 0; i < n; i++) {
		memcpy(to, pieces[i].bytes, pieces[i].size);
		to += pieces[i].size;
	}
	sf_outbox_commit(box, bytes, size, type, size);
	return true;
}

uint64_t sf_outbox_used(const struct sf_outbox_header *box)
{
	/* In this order: a reader that comes in between makes it more, never less than nothing. */
	const uint64_t tail = atomic_load_explicit(&box->tail, memory_order_acquire);

	return atomic_load_explicit(&box->head, memory_order_relaxed) - tail;
}

/*
 * --- the reader's side: what stands in the memory may be anything, and may change while we look
 * ---
 */

/* The size of what stands at tail, 0 for nothing yet, or -1 when it cannot be. Read once. */
static int64_t look(struct sf_outbox_header *box, uint64_t ring_size, uint64_t tail)
{
	uint64_t size;

	if (ring_size < 64 || (ring_size & (ring_size - 1)) || (tail & 7))
		return -1;
	/* Pairs with the release in publish. */
	size = atomic_load_explicit(size_at(box, ring_size, tail), memory_order_acquire);
	if ((size & 7) || size > ring_size - (tail & (ring_size - 1)))
		return -1;
	return (int64_t)size;
}

/* Pairs with the acquire in reserve. */
static void give_back(struct sf_outbox_header *box, uint64_t ring_size, uint64_t tail,
		      uint64_t size)
{
	memset(at(box, ring_size, tail), 0, size);
	atomic_store_explicit(&box->tail, tail + size, memory_order_release);
}

static uint16_t type_at(struct sf_outbox_header *box, uint64_t ring_size, uint64_t position)
{
	uint16_t type;

	memcpy(&type, at(box, ring_size, position) + offsetof(struct sf_record_header, type),
	       sizeof(type));
	return type;
}

/* The copy carries the size that was checked, and not what the memory says by then. */
static void copy_out(struct sf_outbox_header *box, uint64_t ring_size, uint64_t tail, uint64_t size,
		     uint8_t *ret)
{
	const uint32_t checked = (uint32_t)size;

	memcpy(ret, at(box, ring_size, tail), size);
	memcpy(ret, &checked, sizeof(checked));
}

int sf_outbox_get(struct sf_outbox_header *box, uint64_t ring_size, void *ret, size_t capacity)
{
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
	int64_t size = look(box, ring_size, tail);

	/*
	 * At most one filler in a row: it reaches to the end, and the next record fits from there.
	 */
	if (size > 0 && type_at(box, ring_size, tail) == 0) {
		give_back(box, ring_size, tail, (uint64_t)size);
		tail += (uint64_t)size;
		size = look(box, ring_size, tail);
		if (size > 0 && type_at(box, ring_size, tail) == 0)
			return -1;
	}
	if (size <= 0)
		return (int)size;
	if ((uint64_t)size > capacity)
		return -1;
	copy_out(box, ring_size, tail, (uint64_t)size, ret);
	give_back(box, ring_size, tail, (uint64_t)size);
	return 1;
}

const struct sf_record_header *sf_outbox_peek(struct sf_outbox_header *box)
{
	for (;;) {
		const uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
		const int64_t size = look(box, box->size, tail);

		if (size <= 0)
			return NULL;
		if (type_at(box, box->size, tail) != SF_OUTBOX_FILLER)
			return (const struct sf_record_header *)(const void *)at(box, box->size, tail);
		give_back(box, box->size, tail, (uint64_t)size);
	}
}

void sf_outbox_release(struct sf_outbox_header *box)
{
	const uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
	const int64_t size = look(box, box->size, tail);

	if (size > 0)
		give_back(box, box->size, tail, (uint64_t)size);
}
