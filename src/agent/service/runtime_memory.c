/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread's view of its runtimes' memory. It is read through the kernel, as from outside, except where a runtime
 * says that loads are safe.
 */
#include "agent/service/runtime_memory.h"

#include <string.h>

#include "agent/service/batch_read.h"
#include "base/block.h"
#include "frozen/signal/handler.h"

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

/* Whether these bytes can be loaded, and need not be read by the kernel. */
static bool loads(const struct sf_runtime_memory *memory, uint64_t addr, size_t size)
{
	for (size_t i = 0; i < memory->process->n_runtimes; i++) {
		const struct sf_runtime *runtime = memory->process->runtimes[i];

		if (runtime->ops->loads && runtime->ops->loads(runtime, addr, size))
			return true;
	}
	return false;
}

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct sf_runtime_memory *memory = reader->arg;

	if (loads(memory, addr, size)) {
		memcpy(ret, (const void *)(uintptr_t)addr, size);
		return true;
	}
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

	if (!loads(memory, addr, size))
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
