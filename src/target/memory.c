/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory of the watched processes through a cache of lines. */
#include "target/memory.h"

#include <stdlib.h>
#include <string.h>

#include "frozen/memory/hash.h"
#include "os/clock.h"
#include "os/pages.h"
#include "os/process.h"

#define LINE SF_MEMORY_LINE   /* a power of two, at most a page: it can be read whole or not at all */
#define LOG2_LINES 9          /* two megabytes; a walk of 100 managed frames looks at some 100 lines */
#define N_LINES (1u << LOG2_LINES)

struct line {
	uint64_t start;
	uint64_t read_ns;     /* when reading it began; 0: nothing is in it */
	int32_t pid;
	uint8_t bytes[LINE];
};

struct sf_memory {
	int32_t pid, tid;
	uint64_t stack_start, stack_end;
	struct sf_pages pages;
	uint64_t since_ns;
	struct line lines[N_LINES]; /* each address has one place */
};

struct sf_memory *sf_memory_create(void)
{
	return calloc(1, sizeof(struct sf_memory));
}

void sf_memory_destroy(struct sf_memory *memory)
{
	if (memory)
		sf_pages_close(&memory->pages);
	free(memory);
}

void sf_memory_turn(struct sf_memory *memory, int32_t pid, int32_t tid, uint64_t since_ns)
{
	memory->pid = pid;
	memory->tid = tid;
	memory->since_ns = since_ns;
	memory->stack_start = memory->stack_end = 0;
}

void sf_memory_set_stack(struct sf_memory *memory, uint64_t start, uint64_t end)
{
	memory->stack_start = start;
	memory->stack_end = end;
}

static struct line *place_of(struct sf_memory *memory, uint64_t start)
{
	return &memory->lines[sf_hash(start / LINE, LOG2_LINES)];
}

static bool serves(const struct sf_memory *memory, const struct line *line, uint64_t start)
{
	return line->read_ns && line->read_ns >= memory->since_ns && line->start == start &&
	       line->pid == memory->pid;
}

static size_t read_through(struct sf_memory *memory, int32_t tid, void *ret, uint64_t addr, size_t size)
{
	if (addr >= memory->stack_start && addr < memory->stack_end)
		return sf_pages_read(&memory->pages, memory->pid, tid, ret, addr, size);
	return sf_process_read(tid, ret, addr, size);
}

/* A thread that was held may have ended before its still is walked. */
static size_t read_process(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	const size_t n = read_through(memory, memory->tid, ret, addr, size);

	return n != 0 || memory->tid == memory->pid ? n :
						      read_through(memory, memory->pid, ret, addr, size);
}

/* The line that starts there, NULL when it cannot be read. */
static const struct line *get_line(struct sf_memory *memory, uint64_t start)
{
	struct line *line = place_of(memory, start);
	uint64_t now_ns;

	if (serves(memory, line, start))
		return line;
	now_ns = sf_now_ns();
	line->read_ns = 0;
	if (read_process(memory, line->bytes, start, LINE) != LINE)
		return NULL;
	line->start = start;
	line->pid = memory->pid;
	line->read_ns = now_ns;
	return line;
}

bool sf_memory_read(struct sf_memory *memory, void *ret, uint64_t addr, size_t size)
{
	uint8_t *to = ret;

	if (size > LINE)
		return read_process(memory, ret, addr, size) == size;
	while (size > 0) {
		const uint64_t offset = addr % LINE;
		const size_t n = size < LINE - offset ? size : LINE - offset;
		const struct line *line = get_line(memory, addr - offset);

		if (!line)
			return false;
		memcpy(to, line->bytes + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}
