/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory of the watched processes through a cache of lines. */
#include "target/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frozen/memory/line_cache.h"
#include "os/clock.h"
#include "os/pages.h"
#include "os/process.h"

#define LOG2_LINES 9 /* two megabytes; a walk of 100 managed frames looks at some 100 lines */
#define KEPT_NS UINT64_C(300000000) /* lines of a process that has ended are so much older than a still at the most */

/* A line that was read, also after it serves no still any more. */
struct kept_line {
	uint64_t start, read_ns;
	int32_t pid;            /* 0: there is none */
};

/* The lines that were in the places of the cache before. Two lines that each walk reads may have the same place. */
struct displaced {
	struct kept_line kept[1 << LOG2_LINES];
	uint8_t bytes[1 << LOG2_LINES][SF_MEMORY_LINE];
};

struct sf_memory {
	int32_t pid, tid;
	uint64_t since_ns;
	uint64_t stack_start, stack_end;
	struct kept_line kept[1 << LOG2_LINES]; /* in the places of the cache */
	struct displaced displaced;
	uint8_t line[SF_MEMORY_LINE];           /* for the moment of a read */
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

/*
 * A thread that was held may have ended before its still is walked. While a process ends, its first thread may be the first
 * one without memory.
 */
static size_t read_live(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	size_t n = read_through(memory, memory->tid, ret, addr, size);
	int32_t live;

	if (!n && memory->tid != memory->pid)
		n = read_through(memory, memory->pid, ret, addr, size);
	if (n || errno != ESRCH)
		return n;
	live = sf_process_live_id(memory->pid);
	return live == memory->pid ? 0 : read_through(memory, live, ret, addr, size);
}

static bool is_kept(const struct sf_memory *memory, const struct kept_line *kept, uint64_t addr)
{
	return kept->pid == memory->pid && kept->start == addr && kept->read_ns + KEPT_NS >= memory->since_ns &&
	       !(addr >= memory->stack_start && addr < memory->stack_end);
}

/* Puts `line`, of which `kept` says what it is, into the i-th place; what was there before is displaced. */
static void put_line(struct sf_memory *memory, size_t i, uint8_t *place, const struct kept_line *kept)
{
	struct displaced *displaced = &memory->displaced;

	if (memory->kept[i].pid && (memory->kept[i].start != kept->start || memory->kept[i].pid != kept->pid)) {
		displaced->kept[i] = memory->kept[i];
		memcpy(displaced->bytes[i], place, SF_MEMORY_LINE);
	}
	memory->kept[i] = *kept;
	memcpy(place, memory->line, SF_MEMORY_LINE);
}

/* A line that cannot be read: of a process that has ended it is as it was before. */
static bool take_kept(struct sf_memory *memory, size_t i, uint8_t *place, uint64_t addr)
{
	const struct kept_line displaced = memory->displaced.kept[i];
	const bool is_here = is_kept(memory, &memory->kept[i], addr);

	if ((!is_here && !is_kept(memory, &displaced, addr)) || !sf_process_is_over(memory->pid))
		return false;
	if (!is_here) {
		memcpy(memory->line, memory->displaced.bytes[i], SF_MEMORY_LINE);
		put_line(memory, i, place, &displaced);
	}
	return true;
}

static size_t read_line(struct sf_memory *memory, uint8_t *place, uint64_t addr)
{
	const size_t i = (size_t)(place - memory->cache.bytes) / SF_MEMORY_LINE;
	const struct kept_line kept = { addr, sf_now_ns(), memory->pid };

	if (read_live(memory, memory->line, addr, SF_MEMORY_LINE) != SF_MEMORY_LINE)
		return take_kept(memory, i, place, addr) ? SF_MEMORY_LINE : 0;
	put_line(memory, i, place, &kept);
	return SF_MEMORY_LINE;
}

static size_t read_process(void *arg, void *ret, uint64_t addr, size_t size)
{
	struct sf_memory *memory = arg;
	const uint8_t *lines = memory->cache.bytes;
	uint8_t *to = ret;

	if (!memory->filled_ns)
		memory->filled_ns = sf_now_ns();
	if (to >= lines && to < lines + ((size_t)SF_MEMORY_LINE << LOG2_LINES))
		return read_line(memory, to, addr);
	return read_live(memory, ret, addr, size);
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
	memory->since_ns = since_ns;
	memory->stack_start = memory->stack_end = 0;
}

bool sf_memory_read(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	return sf_line_cache_read(&memory->cache, ret, addr, size);
}

bool sf_memory_read_anew(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	return read_live(memory, ret, addr, size) == size ||
	       (sf_process_is_over(memory->pid) && sf_memory_read(memory, ret, addr, size));
}
