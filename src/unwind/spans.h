/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of addresses, each with the rows of the function that it was cut from: what overlaps,
 * what is on top, what fills a hole. Zeroed memory is an empty list; sf_vec_deinit frees it.
 */
#ifndef SF_UNWIND_SPANS_H
#define SF_UNWIND_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_span {
	uint32_t start, end;      /* offsets */
	uint32_t first, n_rows;   /* of the function, where rows are kept */
};

struct sf_spans {
	struct sf_span *items;
	size_t n, capacity;
};

/* Whether one of the spans, which are sorted and disjoint, has all of start up to end. */
bool sf_spans_cover(const struct sf_spans *disjoint, uint32_t start, uint32_t end);

/* By start; of two that start together the one that came first (the lower `first`) comes last. */
void sf_spans_sort(struct sf_spans *spans);

/*
 * Sorted spans that may overlap, to disjoint ones: the one that comes later is on top. *ret is
 * empty before. False when memory ran out: *ret is to be freed all the same.
 */
bool sf_spans_flatten(const struct sf_spans *sorted, struct sf_spans *ret);

/*
 * All of `first`, and of `second` what lies in the holes. Both are sorted and disjoint. As above.
 */
bool sf_spans_merge(const struct sf_spans *first, const struct sf_spans *second,
		    struct sf_spans *ret);

#endif
