/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch reads: collects small pieces of this process's memory, and reads all of them with few
 * requests to the kernel. Ordinary code; one thread uses one `struct sf_batch_read`.
 */
#include "agent/service/batch_read.h"

#include <string.h>

#include "frozen/memory/hash.h"

#define LINE (uint64_t)SF_BATCH_READ_LINE
#define LOG2_SLOTS 13
#define NOWHERE 1u /* where no line can start */

_Static_assert(SF_BATCH_READ_SLOTS == 1u << LOG2_SLOTS, "a slot for each value of the hash");
_Static_assert(SF_BATCH_READ_SLOTS >= 2 * SF_BATCH_READ_LINES, "a search comes to an end");

void sf_batch_read_forget(struct sf_batch_read *fetch)
{
	if (fetch->n)
		memset(fetch->slots, 0, sizeof(fetch->slots));
	fetch->n = fetch->n_done = fetch->n_pieces = 0;
}

/* The slot of the line that starts there, or a free one for it. */
static uint32_t find(const struct sf_batch_read *fetch, uint64_t start)
{
	uint32_t i = (uint32_t)sf_hash(start / LINE, LOG2_SLOTS);

	while (fetch->slots[i] && fetch->starts[fetch->slots[i] - 1] != start)
		i = (i + 1) % SF_BATCH_READ_SLOTS;
	return i;
}

/* Behind the last piece, if it follows that. */
static bool lengthen(struct sf_batch_read *fetch, uint64_t start)
{
	struct iovec *last = fetch->n_pieces ? &fetch->pieces[fetch->n_pieces - 1] : NULL;

	if (!last || (uint64_t)(uintptr_t)last->iov_base + last->iov_len != start)
		return false;
	last->iov_len += LINE;
	return true;
}

static void add_piece(struct sf_batch_read *fetch, uint64_t start)
{
	if (!lengthen(fetch, start))
		fetch->pieces[fetch->n_pieces++] = (struct iovec){ (void *)(uintptr_t)start, LINE };
}

static void want_line(struct sf_batch_read *fetch, uint64_t start)
{
	uint32_t slot;

	if (fetch->n_pieces == SF_BATCH_READ_PIECES)
		sf_batch_read_all(fetch);
	slot = find(fetch, start);
	if (fetch->slots[slot] || fetch->n == SF_BATCH_READ_LINES)
		return;
	fetch->starts[fetch->n++] = start;
	fetch->slots[slot] = (uint16_t)fetch->n;
	add_piece(fetch, start);
}

void sf_batch_read_want(struct sf_batch_read *fetch, uint64_t addr, size_t size)
{
	if (!size)
		return;
	for (uint64_t i = addr / LINE; i <= (addr + size - 1) / LINE; i++)
		want_line(fetch, i * LINE);
}

void sf_batch_read_all(struct sf_batch_read *fetch)
{
	const size_t size = (fetch->n - fetch->n_done) * LINE;

	if (!fetch->n_pieces)
		return;
	fetch->n_done += (uint32_t)(sf_own_memory_gather(fetch->access, fetch->bytes[fetch->n_done], size,
						   fetch->pieces, fetch->n_pieces) / LINE);
	while (fetch->n_done < fetch->n)
		fetch->starts[fetch->n_done++] = NOWHERE;
	fetch->n_pieces = 0;
}

bool sf_batch_read_at(const struct sf_batch_read *fetch, void *ret, uint64_t addr, size_t size)
{
	uint8_t *to = ret;

	while (size > 0) {
		const uint64_t offset = addr % LINE;
		const size_t n = size < LINE - offset ? size : LINE - offset;
		const uint32_t line = fetch->slots[find(fetch, addr - offset)];

		if (!line || line > fetch->n_done)
			return false;
		memcpy(to, fetch->bytes[line - 1] + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}
