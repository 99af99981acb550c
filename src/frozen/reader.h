/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to read a target's memory: a window of bytes that are already at hand (the copied
 * stack, the thread's own stack in process, a recorded still in a test), and a function for
 * everything else. Zero and "could not read" are never the same.
 */
#ifndef SF_FROZEN_READER_H
#define SF_FROZEN_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "frozen/ends.h"

struct sf_reader {
	const uint8_t *window;       /* not owned */
	uint64_t       window_start; /* address in the target of window[0] */
	uint64_t       window_size;
	/* The copy stops at window end although the stack goes on: reads in
	 * [window end, stack_end) fail as "copy too short". 0 when the window is the whole stack. */
	uint64_t       stack_end;

	/*
	 * Copies `size` bytes at `addr` to `ret`: all of them and true, or false. NULL: nothing
	 * but the window can be read. Signal-safe.
	 */
	bool (*read)(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);
	void  *arg;                  /* for `read` */
	bool   scattered;            /* a hint: what is read lies here and there, not in one
				      * stack */
};

/* All `size` bytes, from the window or through read(). Signal-safe. */
bool sf_read(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);

/* Whether `addr` is stack beyond the end of the copy. Signal-safe. */
static inline bool sf_beyond_copy(const struct sf_reader *reader, uint64_t addr)
{
	return addr < reader->stack_end && addr - reader->window_start >= reader->window_size &&
	       addr >= reader->window_start;
}

/* How a walk ends when these bytes could not be read. Signal-safe. */
static inline enum sf_end sf_why_unread(const struct sf_reader *reader, uint64_t addr, size_t size)
{
	return sf_beyond_copy(reader, addr) || sf_beyond_copy(reader, addr + size - 1) ?
		       SF_END_COPY : SF_END_MEMORY;
}

static inline bool sf_read_u64(const struct sf_reader *reader, uint64_t addr, uint64_t *ret)
{
	uint64_t offset = addr - reader->window_start;

	if (reader->window_size >= sizeof(*ret) && offset <= reader->window_size - sizeof(*ret)) {
		memcpy(ret, reader->window + offset, sizeof(*ret));
		return true;
	}
	return sf_read(reader, ret, addr, sizeof(*ret));
}

/*
 * The same memory for what is in no stack: code, and what a program has besides. Where a stack ends
 * is often not known, and what is mapped above it within stack_end is not refused. Signal-safe.
 */
static inline struct sf_reader sf_reader_outside(const struct sf_reader *reader)
{
	struct sf_reader outside = *reader;

	outside.stack_end = 0;
	outside.scattered = true;
	return outside;
}

#endif
