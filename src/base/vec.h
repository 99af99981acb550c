/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable arrays: SF_VEC(struct sf_row) rows = {0}; zero is empty. The elements are
 * rows.items[0 .. rows.n - 1]; they move when the array grows, so keep numbers, not pointers.
 */
#ifndef SF_BASE_VEC_H
#define SF_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define SF_VEC(type)                                                                               \
	struct {                                                                                   \
		type  *items;                                                                      \
		size_t n, capacity;                                                                \
	}

/* Room for `n` more elements; false when memory ran out, and then nothing has changed. */
#define sf_vec_reserve(vec, more)                                                                  \
	sf_vec_grow((void **)&(vec)->items, &(vec)->capacity, (vec)->n, (more),                    \
		    sizeof(*(vec)->items))

/* Appends one element; false when memory ran out. */
#define sf_vec_push(vec, ...)                                                                      \
	(sf_vec_reserve((vec), 1) && (((vec)->items[(vec)->n++] = (__VA_ARGS__)), true))

/* Frees the elements and leaves the array empty. */
#define sf_vec_deinit(vec)                                                                         \
	do {                                                                                       \
		free((vec)->items);                                                                \
		(vec)->items = NULL;                                                               \
		(vec)->n = (vec)->capacity = 0;                                                    \
	} while (0)

bool sf_vec_grow(void **items, size_t *capacity, size_t n, size_t more, size_t item_size);

#endif
