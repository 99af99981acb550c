/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read function of readers (reader.h). Signal-safe. Bytes in a window are copied from the window.
 * Of a copied stack nothing else is read: the thread may have run on, and that memory may be
 * of a later moment. All other reads go to the reader's own function.
 */
#include <stddef.h>

#include "frozen/reader.h"

#include "frozen/frozen.h"

static bool holds(uint64_t start, uint64_t window_size, uint64_t addr, size_t size)
{
	return size <= window_size && addr - start <= window_size - size;
}

static const struct sf_window *find_other(const struct sf_reader *reader, uint64_t addr, size_t size)
{
	for (uint32_t i = 0; i < reader->n_others; i++) {
		const struct sf_window *other = &reader->others[i];

		if (holds(other->start, other->size, addr, size))
			return other;
	}
	return NULL;
}

bool sf_in_window(const struct sf_reader *reader, uint64_t addr)
{
	return holds(reader->window_start, reader->window_size, addr, 1) || find_other(reader, addr, 1);
}

/* Whether `addr` is stack beyond the end of a copy. */
static bool is_beyond(uint64_t start, uint64_t size, uint64_t stack_end, uint64_t addr)
{
	return addr < stack_end && addr >= start && addr - start >= size;
}

static bool is_beyond_copy(const struct sf_reader *reader, uint64_t addr)
{
	if (is_beyond(reader->window_start, reader->window_size, reader->stack_end, addr))
		return !find_other(reader, addr, 1);
	for (uint32_t i = 0; reader->copied && i < reader->n_others; i++) {
		const struct sf_window *other = &reader->others[i];

		if (is_beyond(other->start, other->size, other->stack_end, addr))
			return true;
	}
	return false;
}

enum sf_end sf_why_unread(const struct sf_reader *reader, uint64_t addr, size_t size)
{
	if (is_beyond_copy(reader, addr) || is_beyond_copy(reader, addr + size - 1))
		return SF_END_COPY;
	if (reader->copied && reader->unread)
		*reader->unread = addr;
	return reader->copied ? SF_END_OTHER_STACK : SF_END_MEMORY;
}

bool sf_read(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	const struct sf_window *other;
	uint64_t last;

	if (size == 0)
		return true;
	if (holds(reader->window_start, reader->window_size, addr, size)) {
		memcpy(ret, reader->window + (addr - reader->window_start), size);
		return true;
	}
	other = find_other(reader, addr, size);
	if (other) {
		memcpy(ret, other->bytes + (addr - other->start), size);
		return true;
	}
	if (reader->copied || __builtin_add_overflow(addr, size - 1, &last))
		return false;
	if (is_beyond_copy(reader, addr) || is_beyond_copy(reader, last))
		return false;
	return reader->read && reader->read(reader, ret, addr, size);
}
