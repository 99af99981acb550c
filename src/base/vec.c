/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: base/vec.h has the typed macros, and this file the allocation. */
#include "base/vec.h"


bool sf_vec_grow(void **items, size_t *capacity, size_t n, size_t more, size_t item_size)
{
	size_t wanted, bytes;
	void *grown;

	if (__builtin_add_overflow(n, more, &wanted))
		return false;
	if (wanted <= *capacity)
		return true;
	if (wanted < *capacity + *capacity / 2)
		wanted = *capacity + *capacity / 2;
	if (wanted < 16)
		wanted = 16;
	if (__builtin_mul_overflow(wanted, item_size, &bytes))
		return false;
	grown = realloc(*items, bytes);
	if (!grown)
		return false;
	*items = grown;
	*capacity = wanted;
	return true;
}
