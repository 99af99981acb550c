/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qsort, for the shared library's own use (hidden): libc's allocates by the program's malloc (heap.h) for more than a
 * kilobyte. A heap sort, in place.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/libc/hidden.h"

struct items {
	uint8_t *first;
	size_t size;           /* of one */
	int (*compare)(const void *a, const void *b);
};

static uint8_t *item(const struct items *items, size_t i)
{
	return items->first + i * items->size;
}

static void swap(const struct items *items, size_t a, size_t b)
{
	uint8_t *x = item(items, a), *y = item(items, b);

	for (size_t i = 0; i < items->size; i++) {
		const uint8_t byte = x[i];

		x[i] = y[i];
		y[i] = byte;
	}
}

static bool is_less(const struct items *items, size_t a, size_t b)
{
	return items->compare(item(items, a), item(items, b)) < 0;
}

/* Moves an item down until none below it is greater: those below i are 2i+1 and 2i+2. */
static void sift_down(const struct items *items, size_t i, size_t n)
{
	size_t below;

	while ((below = 2 * i + 1) < n) {
		if (below + 1 < n && is_less(items, below, below + 1))
			below++;
		if (!is_less(items, i, below))
			return;
		swap(items, i, below);
		i = below;
	}
}

SF_HIDDEN void qsort(void *first, size_t n, size_t size, int (*compare)(const void *a, const void *b))
{
	const struct items items = { first, size, compare };

	for (size_t i = n / 2; i-- > 0;)
		sift_down(&items, i, n);
	while (n > 1) {
		swap(&items, 0, --n);
		sift_down(&items, 0, n);
	}
}
