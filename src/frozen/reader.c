/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the target's memory. The window answers for what it holds; what lies beyond it on the
 * same stack is refused, since the thread may have run on and the memory there is of another
 * moment; the rest is asked of the reader's function.
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
