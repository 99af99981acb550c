/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread's view of its runtimes' memory. It is read through the kernel, as from outside, except where a runtime
 * says that loads are safe. Small pieces are collected, and read with few requests to the kernel.
 */
#include "agent/service/runtime_memory.h"

#include <string.h>

#include "base/block.h"
#include "frozen/memory/hash.h"
#include "frozen/signal/handler.h"

/* --- batch reads --- */

#define LINE (uint64_t)SF_BATCH_READ_LINE
#define LOG2_SLOTS 13
#define NOWHERE 1u /* where no line can start */

_Static_assert(SF_BATCH_READ_SLOTS == 1u << LOG2_SLOTS, "a slot for each value of the hash");
_Static_assert(SF_BATCH_READ_SLOTS >= 2 * SF_BATCH_READ_LINES, "a search comes to an end");

void sf_batch_read_forget(struct sf_batch_read *batch)
{
	if (batch->n)
		memset(batch->slots, 0, sizeof(batch->slots));
	batch->n = batch->n_done = batch->n_pieces = 0;
}

/* The slot of the line that starts there, or a free one for it. */
static uint32_t find(const struct sf_batch_read *batch, uint64_t start)
{
	uint32_t i = (uint32_t)sf_hash(start / LINE, LOG2_SLOTS);

	while (batch->slots[i] && batch->starts[batch->slots[i] - 1] != start)
		i = (i + 1) % SF_BATCH_READ_SLOTS;
	return i;
}

/* Behind the last piece, if it follows that. */
static bool lengthen(struct sf_batch_read *batch, uint64_t start)
{
	struct iovec *last = batch->n_pieces ? &batch->pieces[batch->n_pieces - 1] : NULL;

	if (!last || (uint64_t)(uintptr_t)last->iov_base + last->iov_len != start)
		return false;
	last->iov_len += LINE;
	return true;
}

static void add_piece(struct sf_batch_read *batch, uint64_t start)
{
	if (!lengthen(batch, start))
		batch->pieces[batch->n_pieces++] = (struct iovec){ (void *)(uintptr_t)start, LINE };
}

static void want_line(struct sf_batch_read *batch, uint64_t start)
{
	uint32_t slot;

	if (batch->n_pieces == SF_BATCH_READ_PIECES)
		sf_batch_read_all(batch);
	slot = find(batch, start);
	if (batch->slots[slot] || batch->n == SF_BATCH_READ_LINES)
		return;
	batch->starts[batch->n++] = start;
	batch->slots[slot] = (uint16_t)batch->n;
	add_piece(batch, start);
}

void sf_batch_read_want(struct sf_batch_read *batch, uint64_t addr, size_t size)
{
	if (!size)
		return;
	for (uint64_t i = addr / LINE; i <= (addr + size - 1) / LINE; i++)
		want_line(batch, i * LINE);
}

void sf_batch_read_all(struct sf_batch_read *batch)
{
	const size_t size = (batch->n - batch->n_done) * LINE;

	if (!batch->n_pieces)
		return;
	batch->n_done += (uint32_t)(sf_own_memory_gather(batch->access, batch->bytes[batch->n_done], size,
						   batch->pieces, batch->n_pieces) / LINE);
	while (batch->n_done < batch->n)
		batch->starts[batch->n_done++] = NOWHERE;
	batch->n_pieces = 0;
}

bool sf_batch_read_at(const struct sf_batch_read *batch, void *ret, uint64_t addr, size_t size)
{
	uint8_t *to = ret;

	while (size > 0) {
		const uint64_t offset = addr % LINE;
		const size_t n = size < LINE - offset ? size : LINE - offset;
		const uint32_t line = batch->slots[find(batch, addr - offset)];

		if (!line || line > batch->n_done)
			return false;
		memcpy(to, batch->bytes[line - 1] + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}

/* --- the memory of runtimes --- */

struct sf_runtime_memory {
	const struct sf_process *process; /* whose runtimes are read */
	struct sf_own_memory_lines lines; /* of their memory, as it was just now */
	struct sf_batch_read batch;       /* of all that is wanted */
};

struct sf_runtime_memory *sf_runtime_memory_create(const struct sf_process *process)
{
	struct sf_runtime_memory *memory = sf_block_new(sizeof(*memory));

	if (!memory)
		return NULL;
	memory->process = process;
	memory->batch.access = &sf_handler.code.memory;
	sf_runtime_memory_forget(memory);
	return memory;
}

void sf_runtime_memory_destroy(struct sf_runtime_memory *memory)
{
	sf_block_free(memory);
}

/* The kernel reads only bytes that cannot be loaded. */
static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct sf_runtime_memory *memory = reader->arg;

	if (sf_runtimes_load(memory->process->runtimes, memory->process->n_runtimes, addr, size)) {
		memcpy(ret, (const void *)(uintptr_t)addr, size);
		return true;
	}
	if (reader->anew)
		return sf_own_memory_read(memory->batch.access, ret, addr, size) == size;
	return sf_batch_read_at(&memory->batch, ret, addr, size) ||
	       sf_line_cache_read(&memory->lines.cache, ret, addr, size);
}

void sf_runtime_memory_forget(void *arg)
{
	struct sf_runtime_memory *memory = arg;

	sf_batch_read_forget(&memory->batch);
	sf_own_memory_lines_init(&memory->lines, &sf_handler.code.memory);
}

/* Adds memory to the batch read, except memory that can be loaded directly. */
static void want(void *arg, uint64_t addr, size_t size)
{
	struct sf_runtime_memory *memory = arg;

	if (!sf_runtimes_load(memory->process->runtimes, memory->process->n_runtimes, addr, size))
		sf_batch_read_want(&memory->batch, addr, size);
}

static void fetch(void *arg)
{
	struct sf_runtime_memory *memory = arg;

	sf_batch_read_all(&memory->batch);
}

struct sf_reader sf_runtime_memory_reader(struct sf_runtime_memory *memory)
{
	return (struct sf_reader){ .read = read_memory, .arg = memory };
}

struct sf_prefetch sf_runtime_memory_prefetch(struct sf_runtime_memory *memory)
{
	return (struct sf_prefetch){ .want = want, .fetch = fetch, .arg = memory };
}
