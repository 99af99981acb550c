/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory of the watched processes through a cache of lines. */
#include "target/memory.h"

#include <stdlib.h>

#include "frozen/memory/line_cache.h"
#include "os/clock.h"
#include "os/pages.h"
#include "os/process.h"

#define LOG2_LINES 9 /* two megabytes; a walk of 100 managed frames looks at some 100 lines */

struct sf_memory {
	int32_t pid, tid;
	uint64_t stack_start, stack_end;
	struct sf_pages pages;
	struct sf_line_cache cache;
	uint64_t filled_ns; /* before the first of the cached lines was read; 0: there is none */
	uint64_t lines[SF_LINE_CACHE_SIZE(SF_MEMORY_LINE, LOG2_LINES) / 8];
};

void sf_memory_destroy(struct sf_memory *memory)
{
	if (memory)
		sf_pages_close(&memory->pages);
	free(memory);
}

void sf_memory_set_stack(struct sf_memory *memory, uint64_t start, uint64_t end)
{
	memory->stack_start = start;
	memory->stack_end = end;
}

static size_t read_through(struct sf_memory *memory, int32_t tid, void *ret, uint64_t addr, size_t size)
{
	if (addr >= memory->stack_start && addr < memory->stack_end)
		return sf_pages_read(&memory->pages, memory->pid, tid, ret, addr, size);
	return sf_process_read(tid, ret, addr, size);
}

/* A thread that was held may have ended before its still is walked. */
static size_t read_process(void *arg, void *ret, uint64_t addr, size_t size)
{
	struct sf_memory *memory = arg;
	size_t n;

	if (!memory->filled_ns)
		memory->filled_ns = sf_now_ns();
	n = read_through(memory, memory->tid, ret, addr, size);
	return n || memory->tid == memory->pid ? n : read_through(memory, memory->pid, ret, addr, size);
}

static void forget(struct sf_memory *memory)
{
	sf_line_cache_init(&memory->cache, memory->lines, SF_MEMORY_LINE, LOG2_LINES);
	memory->filled_ns = 0;
}

struct sf_memory *sf_memory_create(void)
{
	struct sf_memory *memory = calloc(1, sizeof(struct sf_memory));

	if (!memory)
		return NULL;
	memory->cache.read = read_process;
	memory->cache.arg = memory;
	forget(memory);
	return memory;
}

void sf_memory_turn(struct sf_memory *memory, int32_t pid, int32_t tid, uint64_t since_ns)
{
	if (memory->filled_ns && (pid != memory->pid || memory->filled_ns < since_ns))
		forget(memory);
	memory->pid = pid;
	memory->tid = tid;
	memory->stack_start = memory->stack_end = 0;
}

bool sf_memory_read(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	return sf_line_cache_read(&memory->cache, ret, addr, size);
}
