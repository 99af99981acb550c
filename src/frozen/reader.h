/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader: the interface by which a target's memory is read. It consists of windows and of a
 * function. A window holds bytes that can be read directly: a copied stack, the thread's own
 * stack in its process, or a recorded still in a test. The function reads all other memory. A value
 * of 0 and a failed read are never the same.
 *
 * A thread whose stack was copied runs on. Later words of its stacks are of another moment. So a reader
 * of such a copy reads stacks from its windows only (`copied`).
 */
#ifndef SF_FROZEN_READER_H
#define SF_FROZEN_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "frozen/ends.h"

/* A copied piece of a stack that the thread is not on, such as the one that a signal's handler left. */
struct sf_window {
	const uint8_t *bytes;        /* not owned */
	uint64_t start, size;        /* address in the target of bytes[0] */
	uint64_t stack_end;          /* as in struct sf_reader */
};

struct sf_reader {
	const uint8_t *window;       /* not owned */
	uint64_t       window_start; /* address in the target of window[0] */
	uint64_t       window_size;
	/* The end of the stack, where the window is a copy of its lower part: reads in
	 * [window end, stack_end) fail as "copy too short". 0: the window is the whole stack. */
	uint64_t       stack_end;
	const struct sf_window *others; /* not owned */
	uint32_t       n_others;
	bool           copied;       /* the thread has run on since the windows were copied */
	uint64_t      *unread;       /* where the last SF_END_OTHER_STACK could not read; NULL: not asked for */

	/*
	 * Copies `size` bytes at `addr` to `ret`: all of them and true, or false. NULL: nothing
	 * but the window can be read. Signal-safe.
	 */
	bool (*read)(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);
	void  *arg;                  /* for `read` */
	bool   scattered;            /* a hint: the addresses are scattered, and not in one stack */
	bool   anew;                 /* a hint: `read` does not use what it has kept of earlier reads */
};

/* All `size` bytes, from the window or through read(). Signal-safe. */
bool sf_read(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size);

/* Whether `addr` is in a window. Signal-safe. */
bool sf_in_window(const struct sf_reader *reader, uint64_t addr);

/* The end of a walk that could not read these bytes. Signal-safe. */
enum sf_end sf_why_unread(const struct sf_reader *reader, uint64_t addr, size_t size);

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
 * The same without what its window has below `sp`, as of a copy that begins there. *unread_ret is where the last SF_END_OTHER_STACK
 * could not read, and is left alone where there is none. Signal-safe.
 */
static inline struct sf_reader sf_reader_from(const struct sf_reader *reader, uint64_t sp, uint64_t *unread_ret)
{
	struct sf_reader above = *reader;
	const uint64_t below = sp - reader->window_start;

	if (below <= reader->window_size) {
		above.window += below;
		above.window_start = sp;
		above.window_size -= below;
	}
	above.unread = unread_ret;
	return above;
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
	outside.copied = false;
	outside.scattered = true;
	return outside;
}

/* A reader of the same target for what may have changed since it was read. Signal-safe. */
static inline struct sf_reader sf_reader_anew(const struct sf_reader *reader)
{
	struct sf_reader anew = *reader;

	anew.anew = true;
	return anew;
}

#endif
