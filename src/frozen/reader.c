/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read function of readers (reader.h). Signal-safe. Bytes in the window are copied from the window.
 * Reads beyond the window on the same stack fail: the thread may have run on, and that memory may be
 * of a later moment. All other reads go to the reader's own function.
 */
#include <stddef.h>

#include "frozen/reader.h"

#include "frozen/frozen.h"

bool sf_read(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	const uint64_t offset = addr - reader->window_start;
	uint64_t last;

	if (size == 0)
		return true;
	if (size <= reader->window_size && offset <= reader->window_size - size) {
		memcpy(ret, reader->window + offset, size);
		return true;
	}
	if (__builtin_add_overflow(addr, size - 1, &last))
		return false;
	if (sf_beyond_copy(reader, addr) || sf_beyond_copy(reader, last))
		return false;
	return reader->read && reader->read(reader, ret, addr, size);
}
