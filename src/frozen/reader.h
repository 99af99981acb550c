/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader: the interface by which a target's memory is read. It consists of a window and of a
 * function. The window holds bytes that can be read directly: a copied stack, the thread's own
 * stack in its process, or a recorded still in a test. The function reads all other memory. A value
 * of 0 and a failed read are never the same.
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
	/* The end of the stack, where the window is a copy of its lower part: reads in
	 * [window end, stack_end) fail as "copy too short". 0: the window is the whole stack. */
	uint64_t       stack_end;

	/*
	 * Copies `size` bytes at `addr` to `ret`: all of them and true, or false. NULL: nothing
	 * but the window can be read. Signal-safe.
	 */
	bool (*read)(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);
	void  *arg;                  /* for `read` */
	bool   scattered;            /* a hint: the addresses are scattered, and not in one stack */
};

/* All `size` bytes, from the window or through read(). Signal-safe. */
bool sf_read(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);

/* Whether `addr` is stack beyond the end of the copy. Signal-safe. */
static inline bool sf_beyond_copy(const struct sf_reader *reader, uint64_t addr)
{
	return addr < reader->stack_end && addr - reader->window_start >= reader->window_size &&
	       addr >= reader->window_start;
}

/* The end of a walk that could not read these bytes. Signal-safe. */
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
 * A reader of the same target for memory outside stacks, such as code and data. The end of a stack
 * is often not known exactly. So this reader also reads mappings above the stack and below
 * stack_end. Signal-safe.
 */
static inline struct sf_reader sf_reader_outside(const struct sf_reader *reader)
{
	struct sf_reader outside = *reader;

	outside.stack_end = 0;
	outside.scattered = true;
	return outside;
}

#endif
